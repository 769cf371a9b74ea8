// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Source is one place where objects come from. Whatever is one is said here: its field,
// its check, and what it makes.
type Source struct {
	// Directory holds YAML and JSON manifests. Required. Danger: who may write
	// there decides what every cluster admits.
	Directory string `json:"directory"`
}

func validateSources(list []Source, at *field.Path) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(at, "name at least one directory")}
	}
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, list[i].validate(at.Index(i))...)
	}
	return errs
}

func (s *Source) validate(at *field.Path) field.ErrorList {
	return file(at.Child("directory"), s.Directory, "")
}

// anchor makes a relative path relative to the directory of the file.
func (s *Source) anchor(dir string) { anchor(dir, &s.Directory) }

// manifests returns the Source that the registry reads.
func (s *Source) manifests() manifest.Source { return manifest.Directory(s.Directory) }
