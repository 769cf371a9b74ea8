// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// File is what was read of one file, or why it could not be.
type File struct {
	Name string // path
	Data []byte
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

// Reference is a file that a manifest names, itself or by a kubeconfig.
type Reference struct {
	source string // directory of the manifest: the file lies there, or in one of fileRoots
	path   string // relative to the working directory, or absolute
}

// Refer returns the file that the object at names: relative paths are relative to
// the manifest.
func (o Origin) Refer(name string) Reference {
	directory := filepath.Dir(o.File)
	return Reference{directory, relativeTo(directory, name)}
}

// sibling returns the file that the content of r names, in the same way.
func (r Reference) sibling(name string) Reference {
	return Reference{r.source, relativeTo(filepath.Dir(r.path), name)}
}

func relativeTo(directory, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(directory, name)
}

// references returns the files that the objects name, but for kubeconfigs.
func (o *Objects) references() []Reference {
	var all []Reference
	add := func(at Origin, name string) {
		if name != "" && !LooksSecret(name) {
			all = append(all, at.Refer(name))
		}
	}
	for i := range o.Clusters {
		if c := o.Clusters[i].Spec.Authentication.Certificate; c != nil {
			add(o.Clusters[i].Origin, c.CAFile)
		}
	}
	for i := range o.Bindings {
		b := &o.Bindings[i]
		add(b.Origin, b.Spec.BearerTokenFile)
		for _, e := range b.Spec.Endpoints {
			add(b.Origin, e.CAFile)
		}
		if c := b.Spec.ClientCertificate; c != nil {
			add(b.Origin, c.CertFile)
			add(b.Origin, c.KeyFile)
		}
	}
	return all
}

// LooksSecret tells a secret that stands where a file's name should (E14): it
// must reach neither the file system nor a log.
func LooksSecret(name string) bool {
	return len(name) > 1024 || strings.ContainsAny(name, "\n\r") ||
		strings.Contains(name, "-----BEGIN") || strings.HasPrefix(name, "eyJ")
}

// ErrSecret is E14's reason.
var ErrSecret = errors.New(fileReference)

// Files are the referenced files.
type Files map[Reference]File

// Read returns the content of the file that the object at names.
func (f Files) Read(at Origin, name string) ([]byte, error) {
	if LooksSecret(name) {
		return nil, ErrSecret
	}
	read, ok := f[at.Refer(name)]
	if !ok {
		return nil, errors.New("was not read")
	}
	return read.Data, read.err
}

// ReadToken returns the bearer token in a file, without surrounding white space.
func (f Files) ReadToken(at Origin, name string) (string, error) {
	data, err := f.Read(at, name)
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
