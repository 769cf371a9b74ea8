// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"os"
	"path/filepath"
)

// source reads manifests and the files that they name. It decodes only what
// has changed.
type source struct {
	paths   []string // directories, or single files
	decoded *decoder // of the manifests with this sum
	sum     string
}

// input is everything that one compilation reads.
type input struct {
	objects  *objects
	files    files
	problems []Problem
	hash     string // hex SHA-256 over names and contents
}

// read reads everything. What cannot be read is a Problem of the input, and
// part of its hash.
func (s *source) read() input {
	manifests := s.manifests()
	if sum := s.hash(manifests); s.decoded == nil || s.sum != sum {
		s.decoded, s.sum = decodeAll(manifests), sum
	}
	in := input{objects: &s.decoded.objects, files: files{}, problems: s.decoded.problems}
	whole := sha256.New()
	writePart(whole, []byte(s.sum))
	in.readFiles(whole, s.decoded.objects.references())
	in.readFiles(whole, s.decoded.objects.kubeconfigReferences(in.files))
	in.hash = hex.EncodeToString(whole.Sum(nil))
	return in
}

// readFiles reads the files at paths, each once, and sums them.
func (in *input) readFiles(whole hash.Hash, paths []string) {
	for _, path := range paths {
		read, known := in.files[path]
		if !known {
			read = readFile(path)
			in.files[path] = read
		}
		writeFile(whole, read)
	}
}

// manifests reads every path: a directory's manifests, or the file itself.
func (s *source) manifests() [][]file {
	read := make([][]file, len(s.paths))
	for i, path := range s.paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			read[i] = []file{readFile(path)}
		} else {
			read[i] = readDirectory(path)
		}
	}
	return read
}

// hash sums names and contents, wherever the directories are.
func (s *source) hash(manifests [][]file) string {
	h := sha256.New()
	for _, files := range manifests {
		writePart(h, binary.LittleEndian.AppendUint64(nil, uint64(len(files))))
		for _, f := range files {
			writePart(h, []byte(filepath.Base(f.name)))
			writeFile(h, f)
		}
	}
	return string(h.Sum(nil))
}

func writeFile(h hash.Hash, f file) {
	if f.err != nil {
		writePart(h, []byte(f.err.Error()))
	}
	writePart(h, f.data)
}

// writePart writes data so that no other sequence of parts reads the same.
func writePart(h hash.Hash, data []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(data)))
	h.Write(n[:])
	h.Write(data)
}

func decodeAll(manifests [][]file) *decoder {
	d := newDecoder()
	for _, files := range manifests {
		for _, f := range files {
			if f.err != nil {
				d.problems = append(d.problems, Problem{File: f.name, Reason: "cannot be read: " + cause(f.err).Error()})
				continue
			}
			d.file(f.name, f.data)
		}
	}
	return d
}

// populated returns which of the paths hold objects.
func (s *source) populated() map[string]bool {
	found := map[string]bool{}
	for _, at := range s.decoded.objects.origins() {
		for _, path := range s.paths {
			if at.file == path || filepath.Dir(at.file) == filepath.Clean(path) {
				found[path] = true
			}
		}
	}
	return found
}
