// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
)

// source reads manifests and the files that they name. It decodes only what
// has changed.
type source struct {
	paths     []string // directories, or single files
	fileRoots []string // where files may lie, besides the directories of their manifests
	decoded   *decoder // of the manifests with this sum
	sum       string
	parsed    map[reference]parsedKubeconfig // as of the last reading
}

// parsedKubeconfig is what came of a kubeconfig's content.
type parsedKubeconfig struct {
	data []byte
	*kubeconfig
	err error
}

// input is everything that one compilation reads.
type input struct {
	objects     *objects
	files       files
	kubeconfigs map[reference]kubeAccess
	problems    []Problem
	hash        string // hex SHA-256 over names and contents
}

// kubeAccess is what a kubeconfig says, or why it cannot be used.
type kubeAccess struct {
	KubeAccess
	err error
}

// read reads everything. What cannot be read is a Problem of the input, and
// part of its hash.
func (s *source) read() input {
	manifests := s.manifests()
	if sum := s.hash(manifests); s.decoded == nil || s.sum != sum {
		s.decoded, s.sum = decodeAll(manifests), sum
	}
	in := input{objects: &s.decoded.objects, files: files{}, kubeconfigs: map[reference]kubeAccess{}, problems: s.decoded.problems}
	whole := sha256.New()
	writePart(whole, []byte(s.sum))
	r := reading{into: &in, hash: whole, fileRoots: s.fileRoots, open: map[string]*roots{}}
	defer r.close()
	for _, f := range s.decoded.objects.references() {
		writeFile(whole, r.file(f))
	}
	s.readKubeconfigs(&r)
	in.hash = hex.EncodeToString(whole.Sum(nil))
	return in
}

// readKubeconfigs reads the kubeconfigs that Clusters name. What counts of them is
// the access, not the bytes: a credential in them may be renewed at any time.
func (s *source) readKubeconfigs(r *reading) {
	parsed := map[reference]parsedKubeconfig{}
	for i := range s.decoded.objects.clusters {
		m := &s.decoded.objects.clusters[i]
		name := m.Spec.KubeconfigFile
		if name == "" || looksSecret(name) {
			continue
		}
		at := m.refer(name)
		read := r.file(at)
		known, again := s.parsed[at]
		if !again || !bytes.Equal(known.data, read.data) {
			known = parsedKubeconfig{data: read.data}
			known.kubeconfig, known.err = parseKubeconfig(read.data)
		}
		parsed[at] = known
		r.access(at, read, known)
	}
	s.parsed = parsed
}

// reading is one pass over the files that manifests name.
type reading struct {
	into      *input
	hash      hash.Hash
	fileRoots []string
	open      map[string]*roots // by the manifests' directory
}

func (r *reading) close() {
	for _, directories := range r.open {
		directories.close()
	}
}

// file reads a file once.
func (r *reading) file(at reference) file {
	read, known := r.into.files[at]
	if known {
		return read
	}
	data, err := r.within(at.source).read(at.path)
	read = file{name: at.path, data: data, err: err}
	r.into.files[at] = read
	return read
}

// within returns where the files lie that manifests of a directory name.
func (r *reading) within(directory string) *roots {
	within := r.open[directory]
	if within == nil {
		within = openRoots(append([]string{directory}, r.fileRoots...)...)
		r.open[directory] = within
	}
	return within
}

// access enters what a kubeconfig describes, and sums it.
func (r *reading) access(at reference, read file, k parsedKubeconfig) {
	found := kubeAccess{err: k.err}
	switch {
	case read.err != nil:
		found.err = unreadableFile(read.err)
	case k.err == nil:
		described := kubeconfigAt{k.kubeconfig, at, r.fileRoots}
		found.KubeAccess, found.err = described.access(func(ca reference) ([]byte, error) {
			authorities := r.file(ca)
			return authorities.data, authorities.err
		})
		if found.err == nil {
			found.err = found.Credential.outside(r.within(at.source))
		}
	}
	r.into.kubeconfigs[at] = found
	if found.err != nil {
		writePart(r.hash, []byte(found.err.Error()))
		return
	}
	// Names as they are written, so that replicas agree wherever their directories are.
	c := found.Credential
	for _, part := range []string{
		found.Server, found.ServerName, found.CA, k.user.TokenFile, k.user.Certificate, k.user.Key,
		fmt.Sprint(c.Kubeconfig != "", c.CertificateFile != "", c.KeyFile != ""),
	} {
		writePart(r.hash, []byte(part))
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
