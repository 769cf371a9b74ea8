// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "image-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code) //nolint:forbidigo // it is main here
}

// made is what "make image" makes of the repository, once for all tests.
var made = sync.OnceValues(func() (string, error) { return build("../..", "made") })

// build runs "make image" in a repository and returns the directory of the layout.
func build(repository, into string) (string, error) {
	dir := filepath.Join(scratch, into)
	cmd := exec.Command("make", "--no-print-directory", "-C", repository, "image", "IMAGE="+dir, "VERSION=v1.2.3+dirty", "CREATED=1700000000", "REVISION=abc")
	cmd.Stderr = os.Stderr
	return filepath.Join(dir, "oci"), cmd.Run()
}

// index returns the only image of a layout, which it validates.
func index(t *testing.T, dir string) v1.ImageIndex {
	t.Helper()
	at, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(at); err != nil {
		t.Fatal(err)
	}
	manifest, err := at.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v, %v", manifest, err)
	}
	found, err := at.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// images returns the images of a layout by architecture.
func images(t *testing.T) map[string]v1.Image {
	t.Helper()
	dir, err := made()
	if err != nil {
		t.Fatal(err)
	}
	all := index(t, dir)
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]v1.Image{}
	for _, m := range manifest.Manifests {
		image, err := all.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if m.Platform.OS != "linux" {
			t.Errorf("platform %v", m.Platform)
		}
		found[m.Platform.Architecture] = image
	}
	return found
}

// contents hands out each entry of an image's only layer.
func contents(t *testing.T, image v1.Image, visit func(*tar.Header, io.Reader)) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	in, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(header, r)
	}
}
