// SPDX-License-Identifier: Apache-2.0

package manifest

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

// Source reads manifests and the files that they name. It decodes only what
// has changed.
type Source struct {
	Paths     []string // directories, or single files
	FileRoots []string // where files may lie, besides the directories of their manifests
	decoded   *decoder // of the manifests with this sum
	sum       string
	parsed    map[Reference]parsedKubeconfig // as of the last reading
}

// parsedKubeconfig is what came of a kubeconfig's content.
type parsedKubeconfig struct {
	data []byte
	*kubeconfig
	err error
}

// Input is everything that one compilation reads.
type Input struct {
	Objects     *Objects
	Files       Files
	Kubeconfigs map[Reference]Described
	Problems    []Problem
	Hash        string // hex SHA-256 over names and contents
}

// Described is what a kubeconfig says, or why it cannot be used.
type Described struct {
	KubeAccess
	Err error
}

// Read reads everything. What cannot be read is a Problem of the input, and
// part of its hash.
func (s *Source) Read() Input {
	manifests := s.manifests()
	if sum := s.hash(manifests); s.decoded == nil || s.sum != sum {
		s.decoded, s.sum = DecodeAll(manifests), sum
	}
	in := Input{Objects: &s.decoded.objects, Files: Files{}, Kubeconfigs: map[Reference]Described{}, Problems: s.decoded.Problems}
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
	parsed := map[Reference]parsedKubeconfig{}
	for i := range s.decoded.objects.Clusters {
		m := &s.decoded.objects.Clusters[i]
		name := m.Spec.KubeconfigFile
		if name == "" || LooksSecret(name) {
			continue
		}
		at := m.Refer(name)
		read := r.file(at)
		known, again := s.parsed[at]
		if !again || !bytes.Equal(known.data, read.Data) {
			known = parsedKubeconfig{data: read.Data}
			known.kubeconfig, known.err = parseKubeconfig(read.Data)
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
func (r *reading) file(at Reference) File {
	read, known := r.into.Files[at]
	if known {
		return read
	}
	data, err := r.within(at.source).read(at.path)
	read = File{Name: at.path, Data: data, err: err}
	r.into.Files[at] = read
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
func (r *reading) access(at Reference, read File, k parsedKubeconfig) {
	found := Described{Err: k.err}
	switch {
	case read.err != nil:
		found.Err = UnreadableFile(read.err)
	case k.err == nil:
		described := kubeconfigAt{k.kubeconfig, at, r.fileRoots}
		found.KubeAccess, found.Err = described.access(func(ca Reference) ([]byte, error) {
			authorities := r.file(ca)
			return authorities.Data, authorities.err
		})
		if found.Err == nil {
			found.Err = found.Credential.outside(r.within(at.source))
		}
	}
	r.into.Kubeconfigs[at] = found
	if found.Err != nil {
		WritePart(r.hash, []byte(found.Err.Error()))
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
func (s *Source) manifests() [][]File {
	read := make([][]File, len(s.Paths))
	for i, path := range s.Paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			read[i] = []File{readFile(path)}
		} else {
			read[i] = readDirectory(path)
		}
	}
	return read
}

// hash sums names and contents, wherever the directories are.
func (s *Source) hash(manifests [][]File) string {
	h := sha256.New()
	for _, files := range manifests {
		WritePart(h, binary.LittleEndian.AppendUint64(nil, uint64(len(files))))
		for _, f := range files {
			WritePart(h, []byte(filepath.Base(f.Name)))
			writeFile(h, f)
		}
	}
	return string(h.Sum(nil))
}

func writeFile(h hash.Hash, f File) {
	if f.err != nil {
		WritePart(h, []byte(f.err.Error()))
	}
	WritePart(h, f.Data)
}

// WritePart writes data so that no other sequence of parts reads the same.
func WritePart(h hash.Hash, data []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(data)))
	h.Write(n[:])
	h.Write(data)
}

// DecodeAll decodes the manifests of all sources.
func DecodeAll(manifests [][]File) *decoder {
	d := newDecoder()
	for _, files := range manifests {
		for _, f := range files {
			if f.err != nil {
				d.Problems = append(d.Problems, Problem{File: f.Name, Reason: "cannot be read: " + cause(f.err).Error()})
				continue
			}
			d.file(f.Name, f.Data)
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
