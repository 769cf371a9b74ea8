// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/registry"
)

// The clientAuth values.
const (
	Require = "Require"
	IfGiven = "IfGiven"
)

// Load reads, defaults and validates the file at path, with its paths made
// absolute or relative to the working directory. It returns every problem; the
// Config is nil if there is any.
func Load(path string) (*Config, []registry.Problem) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, []registry.Problem{{File: path, Reason: "cannot be read: " + err.Error()}}
	}
	c := new(Config)
	if errs := decode(data, c); len(errs) > 0 {
		return nil, problemsOf(path, errs)
	}
	c.setDefaults()
	c.anchor(filepath.Dir(path))
	if errs := c.validate(); len(errs) > 0 {
		return nil, registry.ProblemsOf(path, Kind, errs)
	}
	return c, nil
}

// decode reads YAML strictly: unknown and duplicate fields and other spellings of
// known ones are errors.
func decode(data []byte, c *Config) []error {
	doc, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return []error{err}
	}
	strict, err := json.UnmarshalStrict(doc, c)
	if err != nil {
		return []error{err}
	}
	return strict
}

func problemsOf(path string, errs []error) []registry.Problem {
	problems := make([]registry.Problem, len(errs))
	for i, err := range errs {
		problems[i] = registry.Problem{File: path, Object: Kind, Reason: err.Error()}
	}
	return problems
}

// setDefaults fills in every default that documentation names, and none elsewhere.
func (c *Config) setDefaults() {
	text(&c.Listen, ":8443")
	text(&c.TLS.ClientAuth, Require)
	text(&c.Admin.Listen, "127.0.0.1:8081")
	duration(&c.ReloadInterval, 2*time.Second)
	number(&c.Limits.RequestBytes, 8<<20)
	number(&c.Limits.ResponseBytes, 4<<20)
	number(&c.Limits.Connections, 4096)
	number(&c.Limits.ShadowCalls, 256)
	duration(&c.Deadline.Default, 10*time.Second)
	duration(&c.Deadline.Max, 30*time.Second)
	optional(&c.Deadline.Grace, 100*time.Millisecond)
	duration(&c.Timeouts.Headers, 5*time.Second)
	duration(&c.Timeouts.Body, 5*time.Second)
	duration(&c.Timeouts.Idle, 120*time.Second)
	duration(&c.Timeouts.Connect, time.Second)
	optional(&c.LameDuck, 10*time.Second)
	duration(&c.DNS.Interval, 10*time.Second)
	duration(&c.DNS.Timeout, 5*time.Second)
	text(&c.Log.Level, "info")
	if c.Bypass.Defaults == nil {
		yes := true
		c.Bypass.Defaults = &yes
	}
}

func text(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

func number(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

func duration(field *metav1.Duration, value time.Duration) {
	if field.Duration == 0 {
		field.Duration = value
	}
}

func optional(field **metav1.Duration, value time.Duration) {
	if *field == nil {
		*field = &metav1.Duration{Duration: value}
	}
}

// anchor makes relative paths relative to the directory of the file.
func (c *Config) anchor(dir string) {
	for _, path := range []*string{&c.TLS.CertFile, &c.TLS.KeyFile, &c.TLS.ClientCAFile} {
		anchor(dir, path)
	}
	for i := range c.Sources {
		anchor(dir, &c.Sources[i].Directory)
	}
}

func anchor(dir string, path *string) {
	if *path != "" && !filepath.IsAbs(*path) {
		*path = filepath.Join(dir, *path)
	}
}
