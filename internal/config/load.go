// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Load reads the file at path strictly, over the defaults, and validates it. Its
// relative paths are then relative to the working directory. It returns every
// problem; the Config is nil if there is any.
func Load(path string) (*Config, []manifest.Problem) {
	r := report{file: path}
	data, err := os.ReadFile(path)
	if err != nil {
		r.whole("cannot be read: " + cause(err).Error())
		return nil, r.problems
	}
	c := defaults()
	if !r.decode(data, c) {
		return nil, r.problems
	}
	r.invalid(c.validate())
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	c.anchor(filepath.Dir(path))
	return c, nil
}

// anchor makes relative paths relative to the directory of the file.
func (c *Config) anchor(dir string) {
	for _, path := range []*string{
		&c.TLS.CertFile, &c.TLS.KeyFile, &c.TLS.ClientCAFile,
		&c.Admin.TLS.CertFile, &c.Admin.TLS.KeyFile, &c.Admin.TLS.ClientCAFile,
		&c.Registration.CAFile, &c.Telemetry.DecisionLog.File,
	} {
		anchor(dir, path)
	}
	for i := range c.Sources {
		c.Sources[i].anchor(dir)
	}
	for i := range c.FileRoots {
		anchor(dir, &c.FileRoots[i])
	}
}

func anchor(dir string, path *string) {
	if *path != "" && !filepath.IsAbs(*path) {
		*path = filepath.Join(dir, *path)
	}
}
