// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
)

// The names in the mirror's directory. A source of the dispatcher is currentLink: what it
// points to is replaced as a whole.
const (
	currentLink    = mirrorstatus.Link
	generationName = "gen-" // and the hash
	indexFile      = ".index.json"
	stageDirectory = ".stage"
)

// format is the version of indexFile.
const format = 1

// generation is what is served as a whole: a directory of manifests.
type generation struct {
	hash    string
	objects map[string]*object
	summary summary
}

// index is what a generation says of itself, beside its files.
type index struct {
	Format  int       `json:"format"`
	Objects []indexed `json:"objects"`
	Summary summary   `json:"summary"`
}

type indexed struct {
	Key     string    `json:"key"`
	Created time.Time `json:"created"`
	Files   []string  `json:"files"`
}

// disk is the mirror's directory.
type disk struct{ path string }

func (d disk) at(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

// write writes a generation, which nobody reads until it is swapped in.
func (d disk) write(g *generation) error {
	final, unfinished := d.at(generationName+g.hash), d.at("."+generationName+g.hash)
	if err := errors.Join(os.RemoveAll(unfinished), os.RemoveAll(final)); err != nil {
		return err
	}
	about := index{Format: format, Summary: g.summary}
	for _, o := range sorted(g.objects) {
		entry := indexed{Key: o.key, Created: o.created}
		for name, data := range o.files {
			entry.Files = append(entry.Files, name)
			if err := put(filepath.Join(unfinished, name), data); err != nil {
				return err
			}
		}
		about.Objects = append(about.Objects, entry)
	}
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	if err := put(filepath.Join(unfinished, indexFile), text); err != nil {
		return err
	}
	return os.Rename(unfinished, final)
}

// put writes a file that the dispatcher's group may read, and nobody else.
func put(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o640) //nolint:gosec // the dispatcher may run as another user of the group
}

// replace writes a file as a whole.
func (d disk) replace(name string, data []byte) error {
	if err := put(d.at("."+name+".new"), data); err != nil {
		return err
	}
	return os.Rename(d.at("."+name+".new"), d.at(name))
}

// swap makes a generation the current one.
func (d disk) swap(hash string) error {
	next := d.at("." + currentLink)
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(generationName+hash, next); err != nil {
		return err
	}
	return os.Rename(next, d.at(currentLink))
}

// current returns the hash of the current generation; "": there is none.
func (d disk) current() string {
	target, err := os.Readlink(d.at(currentLink))
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(target, generationName)
}

// swapped returns when the current generation became that; zero: there is none.
func (d disk) swapped() time.Time {
	link, err := os.Lstat(d.at(currentLink))
	if err != nil {
		return time.Time{}
	}
	return link.ModTime().UTC().Truncate(time.Second)
}

// read reads a generation, and refuses one that is not what its name says.
func (d disk) read(hash string) (*generation, error) {
	root, err := os.OpenRoot(d.at(generationName + hash))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	text, err := root.ReadFile(indexFile)
	if err != nil {
		return nil, err
	}
	var about index
	if err := json.Unmarshal(text, &about); err != nil {
		return nil, err
	}
	if about.Format != format {
		return nil, fmt.Errorf("format %d of another version", about.Format)
	}
	g := &generation{hash: hash, objects: map[string]*object{}, summary: about.Summary}
	for _, entry := range about.Objects {
		files := map[string][]byte{}
		for _, name := range entry.Files {
			if files[name], err = root.ReadFile(name); err != nil {
				return nil, err
			}
		}
		g.objects[entry.Key] = newObject(entry.Key, entry.Created, files)
	}
	if hashOf(filesOf(sorted(g.objects))) != hash {
		return nil, errors.New("its content is not what its name says")
	}
	return g, nil
}

// clean removes generations but those that are kept, and what is unfinished.
func (d disk) clean(keep ...string) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return
	}
	kept := map[string]bool{}
	for _, hash := range keep {
		kept[generationName+hash] = true
	}
	for _, e := range entries {
		if strings.HasPrefix(strings.TrimPrefix(e.Name(), "."), generationName) && !kept[e.Name()] {
			_ = os.RemoveAll(d.at(e.Name()))
		}
	}
}
