// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/internal/objectpath"
)

// Log is what is written to standard error, a line for each record.
type Log struct {
	// Format is json, an object per line, or text, for people. Default: json. Danger:
	// what collects logs reads text as one string.
	Format string `json:"format,omitempty"`
	// Level is debug, info, warn or error. Default: info. debug adds a line for
	// each admission that was allowed. SIGUSR1 changes between debug and this. Danger: above info denials are not logged,
	// above warn what failed open is not either.
	Level string `json:"level,omitempty"`
	// AllowsPerSecond is how many admissions that were allowed get a line at level
	// info, the first of each second; the next line counts those left out. Default:
	// 0, none. Danger: a line costs about as much as a webhook's call.
	AllowsPerSecond int `json:"allowsPerSecond,omitempty"`
}

// Telemetry is what is told beside metrics and the log.
type Telemetry struct {
	// UserNames puts the requesting user's name on spans. Default: false. Danger:
	// the collector's readers then learn who does what.
	UserNames bool `json:"userNames,omitempty"`
	// DecisionLog is a file with a record of every decision.
	DecisionLog DecisionLog `json:"decisionLog,omitzero"`
}

// DecisionLog is a file with one JSON object per admission: who asked for what,
// which webhooks matched, were asked or were skipped and why, and what they said.
type DecisionLog struct {
	// File is written to, and rotated to File.1, File.2 and so on. Default: none,
	// no decision log. Danger: its readers learn who does what in every cluster.
	File string `json:"file,omitempty"`
	// MaxBytes is the size at which the file is rotated. Default: 104857600
	// (100 MiB). Danger: it takes maxFiles+1 times as much on disk.
	MaxBytes int `json:"maxBytes,omitempty"`
	// MaxFiles is how many rotated files are kept. Default: 4. Danger: older
	// decisions are gone.
	MaxFiles int `json:"maxFiles,omitempty"`
	// Allows writes admissions that were plainly allowed, too. Default: true.
	// Danger: without them the file does not say who was asked and agreed.
	Allows bool `json:"allows,omitempty"`
	// Objects adds the objects as they were sent, without the data of Secrets and
	// with mask applied, the options, and userInfo.extra. Default: false. Danger:
	// objects hold what no log should: environment variables, annotations, the
	// content of ConfigMaps.
	Objects bool `json:"objects,omitempty"`
	// Mask are the paths in objects whose values are left out, such as
	// spec.containers.env: a list is gone through, * is any member, and a name with
	// a dot stands in brackets, as in metadata.annotations["example.com/token"].
	// Default: none. Danger: a path that is misspelt masks nothing; a webhook that
	// quotes the object in its message is not masked.
	Mask []string `json:"mask,omitempty"`
}

func (d *DecisionLog) validate(at *field.Path) field.ErrorList {
	errs := append(positive(at.Child("maxBytes"), d.MaxBytes), notNegative(at.Child("maxFiles"), d.MaxFiles)...)
	if d.File != "" {
		errs = append(errs, file(at.Child("file"), d.File, "")...)
	}
	for i, path := range d.Mask {
		if _, err := objectpath.Parse(path); err != nil {
			errs = append(errs, field.Invalid(at.Child("mask").Index(i), path, err.Error()))
		}
	}
	return errs
}
