// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Source is one place where objects come from. Whatever is one is said here: its field,
// its check, and what it makes.
type Source struct {
	// Directory holds YAML and JSON manifests. Required, unless there is Mirror. Danger:
	// who may write there decides what every cluster admits.
	Directory string `json:"directory,omitempty"`
	// Mirror is the directory that `dispatcher-kube sync` keeps beside this process: what
	// is served is its link "current", and the status page shows how the mirror is. At
	// most one source has it. Danger: as of Directory.
	Mirror string `json:"mirror,omitempty"`
	// OtherKinds is Skip or Refuse: what becomes of objects of kinds that the
	// dispatcher does not read. Default: Skip, with one warning for each file, so that
	// the files of public projects load as they are. What looks like a misspelt kind of
	// ours or of admissionregistration.k8s.io is refused in any case.
	OtherKinds string `json:"otherKinds,omitempty"`
}

func validateSources(list []Source, at *field.Path) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(at, "name at least one directory")}
	}
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, list[i].validate(at.Index(i))...)
		if first := mirrorOf(list); list[i].Mirror != "" && first != &list[i] {
			errs = append(errs, field.Forbidden(at.Index(i).Child("mirror"), "there is one mirror at most"))
		}
	}
	return errs
}

func (s *Source) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if words := []string{skipOtherKinds, refuseOtherKinds}; s.OtherKinds != "" && !slices.Contains(words, s.OtherKinds) {
		errs = append(errs, field.NotSupported(at.Child("otherKinds"), s.OtherKinds, words))
	}
	switch {
	case s.Mirror == "":
		return append(errs, file(at.Child("directory"), s.Directory, "")...)
	case s.Directory != "":
		return append(errs, field.Forbidden(at.Child("directory"), "a source has a directory or a mirror"))
	}
	return append(errs, file(at.Child("mirror"), s.Mirror, "")...)
}

// mirrorOf returns the source that is a mirror, nil if none is.
func mirrorOf(list []Source) *Source {
	for i := range list {
		if list[i].Mirror != "" {
			return &list[i]
		}
	}
	return nil
}

// Mirror returns the directory of the mirror beside this process; "": there is none.
func (c *Config) Mirror() string {
	if s := mirrorOf(c.Sources); s != nil {
		return s.Mirror
	}
	return ""
}

const (
	skipOtherKinds   = "Skip"
	refuseOtherKinds = "Refuse"
)

// anchor makes a relative path relative to the directory of the file.
func (s *Source) anchor(dir string) {
	anchor(dir, &s.Directory)
	anchor(dir, &s.Mirror)
}

// manifests returns the Source that the registry reads.
func (s *Source) manifests() manifest.Source {
	directory := manifest.Directory(s.Directory)
	if s.Mirror != "" {
		directory = manifest.Directory(filepath.Join(s.Mirror, mirrorstatus.Link))
	}
	if s.OtherKinds == refuseOtherKinds {
		return manifest.OnlyKnownKinds{Source: directory}
	}
	return directory
}

// validateFileRoots refuses a list that allows every file of the host.
func validateFileRoots(roots []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, root := range roots {
		errs = append(errs, file(at.Index(i), root, "")...)
		if filepath.Clean(root) == string(filepath.Separator) {
			errs = append(errs, field.Invalid(at.Index(i), root, "must be a directory that holds what manifests may name, and nothing else"))
		}
	}
	return errs
}

func validateCell(cell string, at *field.Path) field.ErrorList {
	if cell == "" {
		return nil
	}
	var errs field.ErrorList
	for _, reason := range validation.IsDNS1123Label(cell) {
		errs = append(errs, field.Invalid(at, cell, reason))
	}
	return errs
}

func validateAllowedNetworks(cidrs []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range cidrs {
		if prefix, err := netip.ParsePrefix(cidr); err != nil || prefix.Addr().Is4In6() {
			errs = append(errs, field.Invalid(at.Index(i), cidr, "must be a CIDR such as 127.0.0.0/8 or fd00::/8"))
		}
	}
	return errs
}

// prefixes parses CIDRs that Load has validated.
func prefixes(cidrs []string) []netip.Prefix {
	list := make([]netip.Prefix, len(cidrs))
	for i, cidr := range cidrs {
		list[i] = netip.MustParsePrefix(cidr)
	}
	return list
}
