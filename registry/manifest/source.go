// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
)

// Source is a place where manifests come from.
type Source interface {
	// Name is what people call it, in problems and logs.
	Name() string
	// Read returns its manifests as they are now, always in the same order. It is called
	// at every look, and again until two readings agree. Every change waits for it, so it
	// gives up by itself, and when ctx is done, which is at shutdown. What cannot be read,
	// be it the whole Source, is a File with an error: nothing else tells it from a Source
	// that has become empty.
	Read(ctx context.Context) []File
}

// File is a manifest as its Source has it.
type File struct {
	Name string // what people call it; one that ends in .json is JSON, all others are YAML
	// Directory is where the relative names of files lead that the manifest names, and
	// where these may lie. "": it lies in none, and can name files in FileRoots alone.
	Directory string
	Data      []byte
	// OnlyKnownKinds refuses objects of kinds that the dispatcher does not read. False:
	// they are skipped, with a warning.
	OnlyKnownKinds bool
	Err            error // why it cannot be read, in the same words for the same reason; it shows no secret
}

// Reader reads Sources and the files that their manifests name. It decodes only the
// manifests that have changed.
type Reader struct {
	Sources   []Source
	FileRoots []string // where files may lie, besides the directories of their manifests
	// KeepDecoded keeps what came of manifests that are gone, as long as the Reader lives:
	// for one that is to read them again soon.
	KeepDecoded bool
	// Cell is the cell whose Clusters are read: those of others are left out, with the
	// files that they name, once they are decoded. "": all are read.
	Cell string

	decoded *whole // of the manifests with this sum
	sum     string
	places  string                         // of the same manifests
	parsed  map[reference]parsedKubeconfig // as of the last reading
}

// parsedKubeconfig is what came of a kubeconfig's content.
type parsedKubeconfig struct {
	data []byte
	*kubeconfig
	err error
}

// Input is everything that one compilation reads.
type Input struct {
	Objects   *Objects
	Problems  []Problem // of what could not be read or decoded
	Warnings  []Problem // of what was skipped
	Hash      string    // hex SHA-256 over names and contents
	Populated []bool    // which of the Sources hold objects
	// Cell is the cell that these are for: there may be Clusters of others, which are not
	// among Objects. "": these are all.
	Cell string

	files       map[reference]content
	kubeconfigs map[reference]described
}

// content is what was read of a file that a manifest names, or why it could not be.
type content struct {
	data []byte
	err  error
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
func (r *Reader) Read(ctx context.Context) Input {
	manifests := make([][]File, len(r.Sources))
	for i, source := range r.Sources {
		manifests[i] = source.Read(ctx)
	}
	if r.decoded == nil {
		r.decoded = &whole{}
	}
	if sum, places := hashOf(manifests), placesOf(manifests); r.sum != sum || r.places != places {
		before := r.decoded.files
		r.decoded, r.sum, r.places = decodeAll(manifests, before), sum, places
		if r.KeepDecoded {
			maps.Copy(r.decoded.files, before)
		}
		r.decoded.objects.keepCell(r.Cell)
	}
	in := Input{
		Objects: &r.decoded.objects, Problems: r.decoded.problems, Warnings: r.decoded.warnings, Populated: r.decoded.populated, Cell: r.Cell,
		files: map[reference]content{}, kubeconfigs: map[reference]described{},
	}
	whole := sha256.New()
	WritePart(whole, []byte(r.sum))
	pass := reading{into: &in, hash: whole, fileRoots: r.FileRoots, open: map[string]*roots{}}
	defer pass.close()
	for _, at := range r.decoded.objects.references() {
		read := pass.file(at)
		writeContent(whole, read.data, read.err)
	}
	r.readKubeconfigs(&pass)
	in.Hash = hex.EncodeToString(whole.Sum(nil))
	return in
}

// readKubeconfigs reads the kubeconfigs that Clusters name. What counts of them is
// the access, not the bytes: a credential in them may be renewed at any time.
func (r *Reader) readKubeconfigs(pass *reading) {
	parsed := map[reference]parsedKubeconfig{}
	for i := range r.decoded.objects.Clusters {
		m := &r.decoded.objects.Clusters[i]
		name := m.Spec.KubeconfigFile
		if name == "" || looksSecret(name) {
			continue
		}
		at := m.refer(name)
		read := pass.file(at)
		known, again := r.parsed[at]
		if !again || !bytes.Equal(known.data, read.data) {
			known = parsedKubeconfig{data: read.data}
			known.kubeconfig, known.err = parseKubeconfig(read.data)
		}
		parsed[at] = known
		pass.access(at, read, known)
	}
	r.parsed = parsed
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
func (r *reading) file(at reference) content {
	read, known := r.into.files[at]
	switch {
	case known:
		return read
	case at.lost():
		read.err = errOutside
	default:
		read.data, read.err = r.within(at.source).read(at.path)
	}
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
func (r *reading) access(at reference, read content, k parsedKubeconfig) {
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
