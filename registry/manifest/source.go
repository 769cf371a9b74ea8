// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
)

// Source reads manifests and the files that they name. It decodes only what
// has changed.
type Source struct {
	Paths     []string // directories, or single files
	FileRoots []string // where files may lie, besides the directories of their manifests
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

// Input is everything that one compilation reads.
type Input struct {
	Objects  *Objects
	Problems []Problem // of what could not be read or decoded
	Hash     string    // hex SHA-256 over names and contents

	files       map[reference]file
	kubeconfigs map[reference]described
}

// described is what a kubeconfig says, or why it cannot be used.
type described struct {
	KubeAccess
	err error
}

// File returns the content of the file that the object at names. An error that shows
// no secret says why it has none; it is ErrSecret where the name may be one.
func (in *Input) File(at Origin, name string) ([]byte, error) {
	if looksSecret(name) {
		return nil, ErrSecret
	}
	read, ok := in.files[at.refer(name)]
	if !ok {
		return nil, errors.New("was not read")
	}
	return read.data, read.err
}

// Token returns the bearer token in a file, without surrounding white space. Its
// errors are those of File.
func (in *Input) Token(at Origin, name string) (string, error) {
	data, err := in.File(at, name)
	if err != nil {
		return "", err
	}
	return printableToken(data)
}

// Access returns what the kubeconfig that a Cluster names says, or why it cannot be
// used.
func (in *Input) Access(m *Cluster) (KubeAccess, error) {
	if looksSecret(m.Spec.KubeconfigFile) {
		return KubeAccess{}, ErrSecret
	}
	found := in.kubeconfigs[m.refer(m.Spec.KubeconfigFile)]
	return found.KubeAccess, found.err
}

// Read reads everything. What cannot be read is a Problem of the input, and
// part of its hash.
func (s *Source) Read() Input {
	manifests := s.manifests()
	if sum := s.hash(manifests); s.decoded == nil || s.sum != sum {
		s.decoded, s.sum = decodeAll(manifests), sum
	}
	in := Input{Objects: &s.decoded.objects, files: map[reference]file{}, kubeconfigs: map[reference]described{}, Problems: s.decoded.problems}
	whole := sha256.New()
	WritePart(whole, []byte(s.sum))
	r := reading{into: &in, hash: whole, fileRoots: s.FileRoots, open: map[string]*roots{}}
	defer r.close()
	for _, f := range s.decoded.objects.references() {
		writeFile(whole, r.file(f))
	}
	s.readKubeconfigs(&r)
	in.Hash = hex.EncodeToString(whole.Sum(nil))
	return in
}

// readKubeconfigs reads the kubeconfigs that Clusters name. What counts of them is
// the access, not the bytes: a credential in them may be renewed at any time.
func (s *Source) readKubeconfigs(r *reading) {
	parsed := map[reference]parsedKubeconfig{}
	for i := range s.decoded.objects.Clusters {
		m := &s.decoded.objects.Clusters[i]
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
	into      *Input
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
	found := described{err: k.err}
	switch {
	case read.err != nil:
		found.err = UnreadableFile(read.err)
	case k.err == nil:
		stands := kubeconfigAt{k.kubeconfig, at, r.fileRoots}
		found.KubeAccess, found.err = stands.access(func(ca reference) ([]byte, error) {
			authorities := r.file(ca)
			return authorities.data, authorities.err
		})
		if found.err == nil {
			found.err = found.Credential.outside(r.within(at.source))
		}
	}
	r.into.kubeconfigs[at] = found
	if found.err != nil {
		WritePart(r.hash, []byte(found.err.Error()))
		return
	}
	// Names as they are written, so that replicas agree wherever their directories are.
	c := found.Credential
	for _, part := range []string{
		found.Server, found.ServerName, found.CA, k.user.TokenFile, k.user.Certificate, k.user.Key,
		fmt.Sprint(c.Kubeconfig != "", c.CertificateFile != "", c.KeyFile != ""),
	} {
		WritePart(r.hash, []byte(part))
	}
}

// manifests reads every path: a directory's manifests, or the file itself.
func (s *Source) manifests() [][]file {
	read := make([][]file, len(s.Paths))
	for i, path := range s.Paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			read[i] = []file{readFile(path)}
		} else {
			read[i] = readDirectory(path)
		}
	}
	return read
}

// hash sums names and contents, wherever the directories are.
func (s *Source) hash(manifests [][]file) string {
	h := sha256.New()
	for _, files := range manifests {
		WritePart(h, binary.LittleEndian.AppendUint64(nil, uint64(len(files))))
		for _, f := range files {
			WritePart(h, []byte(filepath.Base(f.name)))
			writeFile(h, f)
		}
	}
	return string(h.Sum(nil))
}

func writeFile(h hash.Hash, f file) {
	if f.err != nil {
		WritePart(h, []byte(f.err.Error()))
	}
	WritePart(h, f.data)
}

// WritePart writes data so that no other sequence of parts reads the same.
func WritePart(h hash.Hash, data []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(data)))
	h.Write(n[:])
	h.Write(data)
}

// decodeAll decodes the manifests of all sources.
func decodeAll(manifests [][]file) *decoder {
	d := newDecoder()
	for _, files := range manifests {
		for _, f := range files {
			if f.err != nil {
				d.problems = append(d.problems, Problem{File: f.name, Reason: "cannot be read: " + cause(f.err).Error()})
			} else {
				d.file(f.name, f.data)
			}
		}
	}
	return d
}

// Populated returns which of the paths hold objects.
func (s *Source) Populated() map[string]bool {
	found := map[string]bool{}
	for _, at := range s.decoded.objects.origins() {
		for _, path := range s.Paths {
			if at.File == path || filepath.Dir(at.File) == filepath.Clean(path) {
				found[path] = true
			}
		}
	}
	return found
}
