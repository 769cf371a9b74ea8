// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/admission-dispatcher/dispatcher/internal/harness/manifests"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// What a manifest may take is bounded.
func TestLargeManifests(t *testing.T) {
	t.Run("E13 file that is too large", func(t *testing.T) {
		h := newHome(t)
		h.put("large.json", "")
		h.must(os.Truncate(filepath.Join(h.dir, "large.json"), 64<<20+1))
		h.refused("larger than 67108864 bytes")
		h.must(os.Truncate(h.path("large.json"), 64<<20))
		h.refused("invalid character")
	})
	t.Run("E7 document that is too large with its aliases", func(t *testing.T) {
		h := newHome(t)
		for aliases, reason := range map[int]string{17: "larger than 16777216 bytes after its aliases", 14: "apiVersion and kind are required"} {
			h.put("aliases.yaml", fmt.Sprintf("a: &a %s\nb: [%s]\n", strings.Repeat("x", 1<<20), strings.TrimSuffix(strings.Repeat("*a, ", aliases), ", ")))
			h.refused(reason)
		}
	})
}

// Whatever could mean something else has another name: what files hold, what they are
// called and where one ends.
func TestHashOfFiles(t *testing.T) {
	known := map[string]string{}
	for name, files := range map[string]map[string]string{
		"two clusters":       {"a.yaml": "a", "b.yaml": "b"},
		"in one file":        {"a.yaml": "a---b"},
		"the other way":      {"a.yaml": "b", "b.yaml": "a"},
		"another file":       {"a.yaml": "a", "c.yaml": "b"},
		"with an empty file": {"a.yaml": "a", "b.yaml": "b", "c.yaml": ""},
		"the end is here":    {"a.yaml": "a#", "b.yaml": "\n---b#b.yaml\n"},
		"and here":           {"a.yaml": "a#b.yaml\n---b#", "b.yaml": "\n"},
	} {
		h := newHome(t)
		for file, clusters := range files {
			h.put(file, strings.NewReplacer("---", "---\n", "b.yaml", "b.yaml", "a", manifests.ClusterNamed("east"), "b", manifests.ClusterNamed("west")).Replace(clusters))
		}
		hash := h.good().Hash
		if other, same := known[hash]; same {
			t.Errorf("%s and %s have one name", name, other)
		}
		known[hash] = name
	}
}

// Which of two directories a file lies in matters: one of them may not become empty.
func TestHashOfDirectories(t *testing.T) {
	hashOf := func(files ...string) string {
		h := newHome(t)
		h.from(h.path("one"), h.path("two"))
		h.put("one/.keep", "")
		h.put("two/.keep", "")
		for _, name := range files {
			h.put(name, manifests.ClusterNamed("c"))
		}
		return h.good().Hash
	}
	known := map[string]int{}
	for i, files := range [][]string{{"one/a.yaml", "one/b.yaml"}, {"one/a.yaml", "two/b.yaml"}, {"two/a.yaml", "two/b.yaml"}} {
		known[hashOf(files...)] = i
	}
	if len(known) != 3 {
		t.Errorf("three inputs have %d names", len(known))
	}
}

// Sequences of parts that are different have different sums, wherever one part ends.
func TestWritePart(t *testing.T) {
	zero := string(make([]byte, 8))
	sum := func(parts ...string) string {
		h := sha256.New()
		for _, part := range parts {
			manifest.WritePart(h, []byte(part))
		}
		return string(h.Sum(nil))
	}
	known := map[string][]string{}
	for _, parts := range [][]string{
		{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"ab", ""}, {"", "ab"}, {"a" + zero + "b"}, {zero}, {zero, ""}, {"", zero},
	} {
		if same, is := known[sum(parts...)]; is {
			t.Errorf("%q and %q have one sum", same, parts)
		}
		known[sum(parts...)] = parts
	}
}

// What a Reader returns after any changes is what one returns that has never read before,
// and a manifest that is as it was is not decoded again.
func TestOnlyWhatHasChangedIsDecoded(t *testing.T) {
	h := newHome(t)
	param := "apiVersion: example.com/v1\nkind: Limit\nmetadata: {name: large}\n"
	policy := `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limits}
spec:
  paramKind: {apiVersion: example.com/v1, kind: Limit}
  validations: [{expression: "true"}]
`
	h.put("kept.yaml", manifests.ClusterNamed("kept"))
	kept := func() *byte { // where the name is that was decoded
		clusters := h.read().Objects.Clusters
		i := slices.IndexFunc(clusters, func(c manifest.Cluster) bool { return c.Name == "kept" })
		return unsafe.StringData(clusters[i].Name)
	}
	first := kept()
	for _, change := range []struct{ file, content string }{
		{"a.yaml", manifests.ClusterNamed("east")},
		{"b.yaml", manifests.ClusterNamed("west")},
		{"param.yaml", param}, // of no policy: a problem
		{"policy.yaml", policy},
		{"a.yaml", "nonsense"},
		{"a.yaml", manifests.ClusterNamed("west")}, // twice
		{"policy.yaml", ""},
		{"a.yaml", manifests.ClusterNamed("east")},
		{"param.yaml", ""},
		{"c.yaml", manifests.ClusterNamed("east")}, // what another file holds, too
	} {
		h.put(change.file, change.content)
		got := h.read()
		want := (&manifest.Reader{Sources: h.reader.Sources, FileRoots: h.reader.FileRoots}).Read(t.Context())
		if !reflect.DeepEqual(said(want), said(got)) {
			t.Errorf("after %s became %q:\n%+v\nwant what is read at once:\n%+v", change.file, change.content, said(got), said(want))
		}
		if kept() != first {
			t.Errorf("kept.yaml was decoded again when %s changed", change.file)
		}
	}
}

// A Reader forgets what came of a manifest that is gone, unless it is to keep it.
func TestKeepDecoded(t *testing.T) {
	for _, keep := range []bool{false, true} {
		h := newHome(t)
		h.reader.KeepDecoded = keep
		cluster := func() *byte {
			h.put("a.yaml", manifests.ClusterNamed("east"))
			return unsafe.StringData(h.read().Objects.Clusters[0].Name)
		}
		before := cluster()
		h.put("a.yaml", "")
		if in := h.read(); in.Objects.Len() > 0 {
			t.Fatalf("%+v", in.Objects)
		}
		if again := cluster(); (again == before) != keep {
			t.Errorf("KeepDecoded %t: decoded again: %t", keep, again != before)
		}
	}
}

// said is all that an Input says of manifests.
func said(in manifest.Input) map[string]any {
	return map[string]any{"objects": *in.Objects, "problems": in.Problems, "hash": in.Hash, "populated": in.Populated}
}

// A kubeconfig means what its content says now, also where it comes back to what it
// was.
func TestKubeconfigComesBack(t *testing.T) {
	h := newAPIHome(t)
	for range 2 {
		for _, server := range []string{"https://one.example.com", "https://two.example.com"} {
			h.kubeconfig(server, "token: a")
			for range 2 {
				if access, _ := h.access(); access.Server != server {
					t.Errorf("the server is %s, want %s", access.Server, server)
				}
			}
		}
	}
}

// bundle is a Source that is no directory.
type bundle []manifest.File

func (bundle) Name() string { return "bundle" }

func (b bundle) Read(context.Context) []manifest.File { return b }

// A manifest that lies in no directory names files in the fileRoots, by absolute names.
// A relative name leads nowhere: not into the working directory, and not there from a
// directory of fileRoots that the process happens to work in.
func TestE17ManifestInNoDirectory(t *testing.T) {
	h := newHome(t)
	h.put("roots/token", "secret")
	h.put("token", "secret")
	t.Chdir(h.path("roots"))
	binding := "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\nspec: {webhooks: [\"*/*\"], bearerTokenFile: %s}\n"
	for _, c := range []struct {
		name   string
		roots  []string
		inside bool
	}{
		{h.path("roots/token"), []string{h.path("roots")}, true},
		{h.path("token"), []string{h.path("roots")}, false},
		{"token", []string{h.path("roots")}, false},
		{"../token", []string{h.path("roots")}, false},
		{h.path("roots/token"), nil, false},
	} {
		h.reader.Sources = []manifest.Source{bundle{{Name: "a.yaml", Data: fmt.Appendf(nil, binding, c.name)}}}
		h.reader.FileRoots = c.roots
		in := h.good()
		token, err := in.Token(in.Objects.Bindings[0].Origin, c.name)
		if c.inside && (err != nil || token != "secret") || !c.inside && (err == nil || !strings.Contains(err.Error(), "lies outside") || token != "") {
			t.Errorf("E17 %s with %q: %q, %v", c.name, c.roots, token, err)
		}
	}
}

// A directory may be named relative to the working directory, and so may what its
// manifests name be.
func TestRelativeDirectory(t *testing.T) {
	h := newHome(t)
	h.put("registry/a.yaml", "apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: b}\nspec: {webhooks: [\"*/*\"], bearerTokenFile: secrets/token}\n")
	h.put("registry/secrets/token", "secret")
	t.Chdir(h.dir)
	h.from("registry")
	in := h.good()
	if token, err := in.Token(in.Objects.Bindings[0].Origin, "secrets/token"); token != "secret" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
}

// A kubeconfig that a manifest in no directory names stands in the fileRoots, and so
// does what it names.
func TestE18ManifestInNoDirectory(t *testing.T) {
	h := newAPIHome(t)
	read := func(name string) error {
		h.reader.Sources = []manifest.Source{bundle{{Name: "a.yaml", Data: fmt.Appendf(nil, "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\nspec: {authentication: {anonymous: true}, kubeconfigFile: %s}\n", name)}}}
		in := h.good()
		access, err := in.Access(&in.Objects.Clusters[0])
		if err != nil {
			return err
		}
		_, err = manifest.NewCredentials(access).Current()
		return err
	}
	t.Chdir(h.path("access"))
	for _, user := range []string{"tokenFile: token", "token: held"} {
		h.kubeconfig("https://api.example.com", user)
		if err := read(h.path("access/kubeconfig")); err != nil {
			t.Errorf("E18 %s: %v", user, err)
		}
		if err := read("kubeconfig"); err == nil || !strings.Contains(err.Error(), "lies outside") {
			t.Errorf("E18 %s, relative: %v", user, err)
		}
	}
	h.put("registry/token", "elsewhere")
	h.kubeconfig("https://api.example.com", "tokenFile: ../registry/token")
	if err := read(h.path("access/kubeconfig")); err == nil || !strings.Contains(err.Error(), "lies outside") {
		t.Errorf("E18 a file outside: %v", err)
	}
}

// moving is a Source whose manifests move.
type moving struct{ directory *string }

func (moving) Name() string { return "moving" }

func (m moving) Read(context.Context) []manifest.File {
	return []manifest.File{{Name: "east.yaml", Directory: *m.directory, Data: []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\nspec: {authentication: {certificate: {commonNames: [east], caFile: ca.pem}}}\n")}}
}

// The files that a manifest names lie where it lies now.
func TestSourceThatMoves(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{a: "old", b: "new"} {
		if err := os.WriteFile(filepath.Join(dir, "ca.pem"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := a
	r := manifest.Reader{Sources: []manifest.Source{moving{&at}}}
	r.Read(t.Context())
	at = b
	in := r.Read(t.Context())
	if data, _ := in.File(in.Objects.Clusters[0].Origin, "ca.pem"); string(data) != "new" {
		t.Errorf("reads %q of the directory where the manifest was", data)
	}
}
