// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

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
	source string // directory of the manifest: the file lies there, or in one of fileRoots; "": it has none
	path   string // relative to the working directory, or absolute
}

// refer returns the file that the object at names: relative paths are relative to
// the manifest.
func (o Origin) refer(name string) reference {
	return reference{o.Directory, relativeTo(o.Directory, name)}
}

// lost reports a relative path of a manifest that lies in no directory.
func (r reference) lost() bool { return r.source == "" && !filepath.IsAbs(r.path) }

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
func (o *Objects) references() []reference {
	var all []reference
	add := func(at Origin, names []string) {
		for _, name := range names {
			if name != "" && !looksSecret(name) {
				all = append(all, at.refer(name))
			}
		}
	}
	for i := range o.Clusters {
		add(o.Clusters[i].Origin, o.Clusters[i].Spec.Files())
	}
	for i := range o.Bindings {
		add(o.Bindings[i].Origin, o.Bindings[i].Spec.Files())
	}
	for i := range o.Admission {
		for _, p := range o.Admission[i].Plugins {
			add(o.Admission[i].Origin, []string{p.Path})
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

// ErrSecret is E14's reason.
var ErrSecret = errors.New(fileReference)

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

// errOutside is E17's reason: a manifest names a file that only the process's
// configuration may name. Whoever may write manifests could otherwise have any
// file of the host sent to a webhook or to an API server.
var errOutside = errors.New("lies outside of the manifest's directory: put the file there, or list its directory in fileRoots of the process's configuration")

// roots are directories that files must lie in, symbolic links resolved. They are
// held open, so that no link that is swapped meanwhile leads out of them.
type roots struct {
	directories []root
}

type root struct {
	path string // absolute
	open *os.Root
}

// openRoots opens those of the directories that exist; "" is none. The caller closes
// them.
func openRoots(directories ...string) *roots {
	r := &roots{}
	for _, directory := range directories {
		path, err := filepath.Abs(directory)
		if err != nil || directory == "" {
			continue
		}
		if open, err := os.OpenRoot(path); err == nil {
			r.directories = append(r.directories, root{path, open})
		}
	}
	return r
}

func (r *roots) close() {
	for _, d := range r.directories {
		_ = d.open.Close()
	}
}

// read reads a regular file below one of the directories. A file elsewhere is
// errOutside, whether it exists or not.
func (r *roots) read(path string) ([]byte, error) {
	at, err := r.find(path)
	if err != nil {
		return nil, err
	}
	return readRegular(at.directory.Open, at.name, at.info)
}

// found is a file below a directory.
type found struct {
	directory *os.Root
	name      string
	info      os.FileInfo
}

// find returns where the file is, without opening it.
func (r *roots) find(path string) (found, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return found{}, err
	}
	missing := errOutside
	for _, d := range r.directories {
		if name, below := d.below(path); below {
			info, err := d.open.Stat(name)
			if err == nil {
				return found{d.open, name, info}, nil
			}
			missing = err
		}
	}
	// A directory by another name, or a symbolic link from one to another.
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return found{}, missing
	}
	for _, d := range r.directories {
		d.path, _ = filepath.EvalSymlinks(d.path) // empty if it has gone: nothing is below it
		if name, below := d.below(resolved); below {
			info, err := d.open.Stat(name)
			return found{d.open, name, info}, err
		}
	}
	return found{}, errOutside
}

// below returns the name of the file at path in the directory, if it is there.
func (d *root) below(path string) (name string, ok bool) {
	name, err := filepath.Rel(d.path, path)
	return name, err == nil && filepath.IsLocal(name)
}

// maxFile bounds a file, in bytes.
const maxFile = 64 << 20

// readRegular reads a regular file; anything else could block for ever.
func readRegular(open func(name string) (*os.File, error), name string, info os.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	return data, nil
}
