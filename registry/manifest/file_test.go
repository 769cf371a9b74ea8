// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/manifests"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const filesYAML = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: pinned}
spec: {authentication: {certificate: {commonNames: [pinned], caFile: sub/pin.pem}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: files}
spec:
  webhooks: ["*/*"]
  bearerTokenFile: token
  clientCertificate: {certFile: client.crt, keyFile: client.key}
  endpoints: [{address: "192.0.2.1:443", caFile: one.pem}, {address: "192.0.2.2:443"}, {address: "192.0.2.3:443", caFile: other.pem}]
`

// Each file that an object names is read, is there by that name, and is part of the
// input: with other content it is another one.
func TestNamedFiles(t *testing.T) {
	h := newHome(t)
	h.put("a.yaml", filesYAML)
	names := []string{"sub/pin.pem", "token", "client.crt", "client.key", "one.pem", "other.pem"}
	for _, name := range names {
		h.put(name, "content-of-"+name)
	}
	at := manifest.Origin{Directory: h.dir}
	known := map[string]string{h.good().Hash: "at first"}
	for _, name := range names {
		in := h.good()
		if data, err := in.File(at, name); err != nil || string(data) != "content-of-"+name {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		h.put(name, "another-content")
		in = h.good()
		if data, err := in.File(at, name); err != nil || string(data) != "another-content" {
			t.Errorf("%s has changed: %q, %v", name, data, err)
		}
		if before, same := known[in.Hash]; same {
			t.Errorf("%s has changed, and the input is the one of %s", name, before)
		}
		known[in.Hash] = name
	}
	h.must(os.Remove(h.path("token")))
	in := h.good()
	if _, err := in.File(at, "token"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that has gone: %v", err)
	}
	if _, err := in.File(at, "a.yaml"); err == nil {
		t.Error("a file that nobody names was read")
	}
}

// A token is what a file holds besides white space around it: printable ASCII.
func TestToken(t *testing.T) {
	h := newHome(t)
	h.put("a.yaml", filesYAML)
	at := manifest.Origin{Directory: h.dir}
	const bad = "must hold one token of printable ASCII"
	for content, reason := range map[string]string{
		"abc": "", "  abc\r\n": "", "!~": "", "\t~\n": "",
		"": "is empty", " \n": "is empty",
		"two words": bad, "a\nb": bad, "a\x7fb": bad, "caf\u00e9": bad, "a\x00b": bad,
	} {
		h.put("token", content)
		in := h.good()
		token, err := in.Token(at, "token")
		if reason == "" && (err != nil || token != strings.TrimSpace(content)) || reason != "" && (err == nil || err.Error() != reason || token != "") {
			t.Errorf("%q: token %q, %v", content, token, err)
		}
	}
	h.must(os.Remove(h.path("token")))
	in := h.good()
	if token, err := in.Token(at, "token"); !errors.Is(err, fs.ErrNotExist) || token != "" {
		t.Errorf("no file: token %q, %v", token, err)
	}
}

// What looks like a secret where a file's name should stand is not looked for (E14).
func TestE14NamesThatLookSecret(t *testing.T) {
	for name, secret := range map[string]bool{
		"token": false, "BEGIN": false, "key-eyJ": false, "ey": false, strings.Repeat("a", 1024): false,
		strings.Repeat("a", 1025): true, "eyJhbGciOiJub25lIn0": true, "eyJ": true, "a\nb": true, "a\rb": true,
		"-----BEGIN PRIVATE KEY-----": true, "x -----BEGIN": true,
	} {
		in := manifest.Input{}
		if _, err := in.File(manifest.Origin{}, name); errors.Is(err, manifest.ErrSecret) != secret {
			t.Errorf("E14 %.30q: %v", name, err)
		}
		if _, err := in.Token(manifest.Origin{}, name); errors.Is(err, manifest.ErrSecret) != secret {
			t.Errorf("E14 token %.30q: %v", name, err)
		}
		c := manifest.Cluster{}
		c.Spec.KubeconfigFile = name
		if _, err := in.Access(&c); errors.Is(err, manifest.ErrSecret) != secret {
			t.Errorf("E14 kubeconfig %.30q: %v", name, err)
		}
	}
}

// Why a file cannot be read is said without its path, which the Problem has, and
// without a word more where the name may be a secret or the file lies outside.
func TestUnreadableFile(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "/secret", Err: syscall.ENOENT}
	for err, want := range map[error]string{
		manifest.ErrSecret: "must be a file reference",
		fmt.Errorf("tokenFile: %w", manifest.ErrSecret): "tokenFile: must be a file reference",
		missing:                       "cannot be read: no such file or directory",
		errors.New("larger than all"): "cannot be read: larger than all",
	} {
		if got := manifest.UnreadableFile(err).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The manifests of a directory are its files of three endings. What cannot be read is a
// problem, and another input than one that is read, or that cannot be for another reason.
func TestManifestsOfADirectory(t *testing.T) {
	h := newHome(t)
	for _, name := range []string{".hidden.yaml", "a.yaml~", "README.md", "yaml", "directory.yaml/more.yaml", "sub/more.yaml"} {
		h.put(name, "junk")
	}
	for i, name := range []string{"one.yaml", "two.yml", "three.json"} {
		h.put(name, `{"apiVersion": "dispatcher.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "c`+fmt.Sprint(i)+`"}}`)
	}
	if in := h.good(); len(in.Objects.Clusters) != 3 {
		t.Errorf("read %v", in.Objects.Clusters)
	}
	known := map[string]string{h.read().Hash: "nothing"}
	another := func(what string) {
		t.Helper()
		hash := h.read().Hash
		if before, same := known[hash]; same {
			t.Errorf("%s is the same input as %s", what, before)
		}
		known[hash] = what
	}
	h.must(os.Symlink("missing", h.path("more.yaml")))
	h.refused("cannot be read: no such file or directory")
	another("a dangling link")
	h.must(os.Remove(h.path("more.yaml")))
	h.must(syscall.Mkfifo(h.path("more.yaml"), 0o600))
	h.refused("cannot be read: not a regular file")
	another("a pipe")
	h.must(os.Remove(h.path("more.yaml")))
	h.put("more.yaml", "")
	h.good()
	another("an empty file")
	h.from(h.path("no such directory"))
	h.refused("cannot be read: no such file or directory")
	another("no directory")
}

// A path may be a single manifest, whatever it is called.
func TestSingleManifest(t *testing.T) {
	h := newHome(t)
	h.put("a.yaml", manifests.ClusterNamed("east"))
	h.put("manifest", manifests.ClusterNamed("west"))
	h.from(h.path("manifest"))
	if in := h.good(); len(in.Objects.Clusters) != 1 || in.Objects.Clusters[0].Name != "west" {
		t.Errorf("read %v", in.Objects.Clusters)
	}
	h.must(os.Remove(h.path("manifest")))
	h.refused("no such file or directory")
}

// Populated tells which paths hold objects, however they are written.
func TestPopulated(t *testing.T) {
	h := newHome(t)
	for _, name := range []string{"full/a.yaml", "single.yaml", "beside.yaml", "full/sub/b.yaml"} {
		h.put(name, manifests.ClusterNamed("c"))
	}
	h.put("empty/a.yaml", "")
	h.put("nothing.yaml", "# nothing")
	for path, want := range map[string]bool{
		"full": true, "full/": true, "./full": true, "full/sub": true, "single.yaml": true, "": true,
		"empty": false, "nothing.yaml": false, "no such directory": false,
	} {
		h.from(h.dir+"/"+path, h.path("empty"))
		if found := h.read().Populated; !slices.Equal(found, []bool{want, false}) {
			t.Errorf("%q: %v", path, found)
		}
	}
	// A file tells nothing of the directory that it lies in.
	h.from(h.path("empty"), h.path("full/a.yaml"), h.path("full/sub"))
	if found := h.read().Populated; !slices.Equal(found, []bool{false, true, true}) {
		t.Errorf("found %v", found)
	}
}
