// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"
	"path/filepath"
)

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

// openRoots opens those of the directories that exist. The caller closes them.
func openRoots(directories ...string) *roots {
	r := &roots{}
	for _, directory := range directories {
		path, err := filepath.Abs(directory)
		if err != nil {
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
	return readRegular(at.directory, at.name, at.info)
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
		if d.path, err = filepath.EvalSymlinks(d.path); err != nil {
			continue
		}
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
