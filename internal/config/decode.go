// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v2" // the only reader below sigs.k8s.io/yaml that tells a second document

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

// decode reads YAML strictly into c: unknown and duplicate fields and other
// spellings of known ones are problems. It returns false if the file says
// nothing that could be validated.
func (r *report) decode(data []byte, c *Config) bool {
	doc, err := document(data)
	if err != nil {
		r.whole(strings.Join(strings.Fields(err.Error()), " "))
		return false
	}
	strict, err := json.UnmarshalStrict(doc, c)
	if wrong, ok := errors.AsType[*stdjson.UnmarshalTypeError](err); ok && wrong.Field != "" {
		r.field(wrong.Field, fmt.Sprintf("must not be a %s", wrong.Value))
		return true
	}
	if err != nil {
		r.whole("must be one object: " + err.Error())
		return false
	}
	for _, e := range strict {
		r.strict(e)
	}
	return true
}

// strict adds an unknown or duplicate field.
func (r *report) strict(err error) {
	at, ok := errors.AsType[json.FieldError](err)
	if !ok {
		r.whole(err.Error())
		return
	}
	what, _, _ := strings.Cut(err.Error(), " \"")
	r.field(at.FieldPath(), what)
}

// document returns the one document of a file as JSON.
func document(data []byte) ([]byte, error) {
	d := goyaml.NewDecoder(bytes.NewReader(data))
	for n := 0; ; n++ {
		var tree any
		err := d.Decode(&tree)
		switch {
		case errors.Is(err, io.EOF) && n == 1:
			return yaml.YAMLToJSONStrict(data)
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("must hold one document, not %d", n)
		case err != nil:
			return nil, err
		}
	}
}

// cause drops the path from a file system's error; the Problem has it.
func cause(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

// Duration is a span of time, written as a text such as "2s" or "250ms".
type Duration struct {
	time.Duration
	unread string // what stands in the file, where that is no duration
}

func span(d time.Duration) Duration { return Duration{Duration: d} }

// UnmarshalJSON reads a duration. It never fails: validation reports what cannot
// be read together with everything else, and where it stands.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" { // like a field that is absent
		return nil
	}
	*d = parseDuration(data)
	return nil
}

func parseDuration(data []byte) Duration {
	var text string
	if stdjson.Unmarshal(data, &text) != nil {
		return Duration{unread: string(data)}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return Duration{unread: fmt.Sprintf("%q", text)}
	}
	return span(d)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (d Duration) MarshalJSON() ([]byte, error) { return stdjson.Marshal(d.String()) }
