// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// report collects what is wrong with a file.
type report struct {
	file     string
	problems []manifest.Problem
}

// field adds a problem of the field at path.
func (r *report) field(path, reason string) {
	r.problems = append(r.problems, manifest.Problem{File: r.file, Object: Kind, Field: path, Reason: reason})
}

// whole adds a problem of the file as a whole.
func (r *report) whole(reason string) {
	r.problems = append(r.problems, manifest.Problem{File: r.file, Reason: reason})
}

// invalid adds what validation found, but for fields that could not be read.
func (r *report) invalid(errs field.ErrorList) {
	errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(r.problems, func(p manifest.Problem) bool { return p.Field == e.Field })
	})
	r.problems = append(r.problems, manifest.ProblemsOf(r.file, Kind, errs)...)
}

// cause drops the path from a file system's error; the Problem has it.
func cause(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}
