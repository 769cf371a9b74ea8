// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// user is who the process is: nobody in particular, by number, so that a kubelet can
// tell that it is not root.
const user = "65532:65532"

// entrypoint is the binary that runs unless a container says otherwise. Its name is the
// first.
const entrypoint = "dispatcher"

// release is what one image is made from.
type release struct {
	version, revision string
	created           time.Time
	licence           []byte
	root              string // of the repository
	binaries          []binary
}

// labels say what the image is, as the OCI names them.
func (r *release) labels() map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":       "admission-dispatcher",
		"org.opencontainers.image.description": "One admission webhook in front of all your admission webhooks, for all your clusters",
		"org.opencontainers.image.source":      "https://github.com/admission-dispatcher/dispatcher",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.created":     r.created.Format(time.RFC3339),
	}
	if r.revision != "" {
		l["org.opencontainers.image.revision"] = r.revision
	}
	return l
}

// index returns the image of all architectures.
func (r *release) index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range r.architectures() {
		image, err := r.image(architecture)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return mutate.Annotations(index, r.labels()).(v1.ImageIndex), nil
}

// architectures returns each once, in order.
func (r *release) architectures() []string {
	var list []string
	for _, b := range r.binaries {
		list = append(list, b.architecture)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// of returns the binaries for an architecture, by name.
func (r *release) of(architecture string) []binary {
	list := slices.DeleteFunc(slices.Clone(r.binaries), func(b binary) bool { return b.architecture != architecture })
	slices.SortFunc(list, func(a, b binary) int { return strings.Compare(a.name, b.name) })
	return list
}

// image returns the image of one architecture: one layer, which starts the dispatcher.
func (r *release) image(architecture string) (v1.Image, error) {
	binaries := r.of(architecture)
	content := []file{{"licenses/LICENSE", 0o644, r.licence}}
	for i, b := range binaries {
		if i > 0 && b.name == binaries[i-1].name {
			return nil, fmt.Errorf("there are two binaries %s", b.name)
		}
		content = append(content, file{b.name, 0o755, b.content})
	}
	if binaries[0].name != entrypoint {
		return nil, fmt.Errorf("there is no binary %s", entrypoint)
	}
	texts, err := licences(binaries, r.root)
	if err != nil {
		return nil, err
	}
	sbom, err := r.sbom(binaries)
	if err != nil {
		return nil, err
	}
	content = append(content, file{"licenses/THIRD-PARTY", 0o644, texts}, file{"sbom.spdx.json", 0o644, sbom})
	slices.SortFunc(content, func(a, b file) int { return strings.Compare(a.name, b.name) })
	files, err := archive(content)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "deploy/image"},
	}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: r.created}
	config.Config = v1.Config{
		User:       user,
		Entrypoint: []string{"/" + entrypoint},
		Cmd:        []string{"serve", "--config", "/etc/dispatcher/dispatcher.yaml"},
		WorkingDir: "/",
		Labels:     r.labels(),
	}
	return mutate.ConfigFile(image, config)
}

// file is a file of the image, which root owns and nobody may write.
type file struct {
	name    string
	mode    int64
	content []byte
}

// archive returns the files as a tar archive, with their directories. Times are zero:
// the content alone decides the digest.
func archive(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	for _, f := range files {
		if dir := path.Dir(f.name); !made[dir] {
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}); err != nil {
				return nil, err
			}
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// write replaces the layout in a directory, reads it back, and returns the digest.
func write(dir string, index v1.ImageIndex, version string) (string, error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag(version)})); err != nil {
		return "", err
	}
	read, err := at.ImageIndex()
	if err != nil {
		return "", err
	}
	if err := validate.Index(read); err != nil {
		return "", fmt.Errorf("the layout in %s is not valid: %w", dir, err)
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// tag returns a version as a tag, which has no "+".
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// upload pushes the image with the credentials that docker and podman keep.
func upload(to string, index v1.ImageIndex) error {
	ref, err := name.ParseReference(to)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(ref, index, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push to %s: %w", to, err)
	}
	return nil
}
