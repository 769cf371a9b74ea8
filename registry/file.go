// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// file is what was read of one file, or why it could not be.
type file struct {
	name string // path
	data []byte
	err  error
}

// cause drops the path from a file system's error; the Problem has it.
func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// reference is a file that a manifest names, itself or by a kubeconfig.
type reference struct {
	source string // directory of the manifest: the file lies there, or in one of fileRoots
	path   string // relative to the working directory, or absolute
}

// refer returns the file that the object at names: relative paths are relative to
// the manifest.
func (o origin) refer(name string) reference {
	directory := filepath.Dir(o.file)
	return reference{directory, relativeTo(directory, name)}
}

// sibling returns the file that the content of r names, in the same way.
func (r reference) sibling(name string) reference {
	return reference{r.source, relativeTo(filepath.Dir(r.path), name)}
}

func relativeTo(directory, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(directory, name)
}

// references returns the files that the objects name, but for kubeconfigs.
func (o *objects) references() []reference {
	var all []reference
	add := func(at origin, name string) {
		if name != "" && !looksSecret(name) {
			all = append(all, at.refer(name))
		}
	}
	for i := range o.clusters {
		if c := o.clusters[i].Spec.Authentication.Certificate; c != nil {
			add(o.clusters[i].origin, c.CAFile)
		}
	}
	for i := range o.bindings {
		b := &o.bindings[i]
		add(b.origin, b.Spec.BearerTokenFile)
		for _, e := range b.Spec.Endpoints {
			add(b.origin, e.CAFile)
		}
		if c := b.Spec.ClientCertificate; c != nil {
			add(b.origin, c.CertFile)
			add(b.origin, c.KeyFile)
		}
	}
	return all
}

// looksSecret tells a secret that stands where a file's name should (E14): it
// must reach neither the file system nor a log.
func looksSecret(name string) bool {
	return len(name) > 1024 || strings.ContainsAny(name, "\n\r") ||
		strings.Contains(name, "-----BEGIN") || strings.HasPrefix(name, "eyJ")
}

// errSecret is E14's reason.
var errSecret = errors.New(fileReference)

// files are the referenced files.
type files map[reference]file

// read returns the content of the file that the object at names.
func (f files) read(at origin, name string) ([]byte, error) {
	if looksSecret(name) {
		return nil, errSecret
	}
	read, ok := f[at.refer(name)]
	if !ok {
		return nil, errors.New("was not read")
	}
	return read.data, read.err
}

// readToken returns the bearer token in a file, without surrounding white space.
func (f files) readToken(at origin, name string) (string, error) {
	data, err := f.read(at, name)
	if err != nil {
		return "", err
	}
	return printableToken(data)
}

func printableToken(data []byte) (string, error) {
	token := bytes.TrimSpace(data)
	if len(token) == 0 {
		return "", errors.New("is empty")
	}
	for _, c := range token {
		if c <= ' ' || c > '~' {
			return "", errors.New("must hold one token of printable ASCII")
		}
	}
	return string(token), nil
}
