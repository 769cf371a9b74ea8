// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// stage is where the files lie that manifests name while they are judged. Versions of one
// object have directories of their own.
type stage struct {
	mirror  *Mirror
	path    string
	written map[string]bool // by the hash of the object
	reader  manifest.Reader // what is judged again is not decoded again
	err     error           // why nothing can be judged
}

func newStage(m *Mirror) *stage {
	return &stage{mirror: m, path: m.disk.at(stageDirectory), written: map[string]bool{},
		reader: manifest.Reader{FileRoots: m.settings.FileRoots, Cell: m.settings.Cell, KeepDecoded: true}}
}

// judge compiles objects as the dispatcher would.
func (s *stage) judge(objects []*object) (*compile.Compiled, []manifest.Problem) {
	for _, o := range objects {
		if err := s.write(o); err != nil && s.err == nil {
			s.err = err
		}
	}
	if s.err != nil {
		return nil, nil
	}
	in := s.read(objects)
	compiled, problems, _ := s.mirror.compiler.Compile(in, nil, nil, foreign(in.Objects)...)
	return compiled, problems
}

func (s *stage) read(objects []*object) manifest.Input {
	s.reader.Sources = []manifest.Source{staged{s.path, objects}}
	return s.reader.Read(context.Background())
}

// write writes the files that the manifests of an object name, once.
func (s *stage) write(o *object) error {
	if s.written[o.hash] {
		return nil
	}
	s.written[o.hash] = true
	for name, data := range o.files {
		if strings.HasPrefix(name, filesDirectory) {
			if err := put(filepath.Join(s.path, o.hash, name), data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stage) clean() error { return os.RemoveAll(s.path) }

// staged is the manifests of objects as a Source.
type staged struct {
	path    string
	objects []*object
}

// Name implements manifest.Source.
func (s staged) Name() string { return s.path }

// Read implements manifest.Source.
func (s staged) Read(context.Context) (files []manifest.File) {
	for _, o := range s.objects {
		for _, name := range slices.Sorted(maps.Keys(o.files)) {
			if !strings.HasPrefix(name, filesDirectory) {
				files = append(files, manifest.File{Name: name, Directory: filepath.Join(s.path, o.hash), Data: o.files[name]})
			}
		}
	}
	return files
}
