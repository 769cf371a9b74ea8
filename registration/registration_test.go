// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registration"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

var update = flag.Bool("update", false, "rewrite the want sections of the stories")

// TestStories makes the registration of each file of testdata: its manifests, and
// what cluster "east" applies.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			options := registration.Options{URL: "https://dispatcher.example.com:8443", Static: strings.Contains(file, "static")}
			got := register(t, archive.Files[:len(archive.Files)-1], options)
			want := &archive.Files[len(archive.Files)-1]
			if *update {
				want.Data = got
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want.Data), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// register compiles the manifests twice, in different orders, and checks that the
// registration is the same bytes.
func register(t *testing.T, manifests []txtar.File, o registration.Options) []byte {
	t.Helper()
	var first []byte
	for _, reversed := range []bool{false, true} {
		dir := t.TempDir()
		for i, f := range manifests {
			if reversed {
				i = len(manifests) - i
			}
			name := fmt.Sprintf("%d-%s", i, f.Name)
			if err := os.WriteFile(filepath.Join(dir, name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := registry.New(registry.Settings{Sources: manifest.Directories(dir), Logger: slog.New(slog.DiscardHandler)})
		if problems := r.Load(); len(problems) > 0 {
			t.Fatal(problems)
		}
		cluster := r.Snapshot().Clusters["east"]
		made, err := registration.New(cluster, o)
		if err != nil {
			t.Fatal(err)
		}
		out, err := made.YAML(cluster)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = out
		}
		if !bytes.Equal(first, out) {
			t.Errorf("not the same bytes:\n%s\n%s", first, out)
		}
	}
	return first
}

// The caller's files name the dispatcher as kube-apiserver looks it up, and have the
// credential that the Cluster has.
func TestCaller(t *testing.T) {
	sum := chain.SumOfPathSecret([]byte("x"))
	for _, tt := range []struct {
		name   string
		has    chain.Credentials
		static bool
		files  int
		want   []string
		not    []string
	}{
		{"a certificate, static", chain.Credentials{Certificate: true, Token: true}, true, 2, []string{
			"kind: AdmissionConfiguration\n", "- name: ValidatingAdmissionWebhook\n", "- name: MutatingAdmissionWebhook\n",
			"kind: WebhookAdmissionConfiguration\n", "staticManifestsDir: /etc/kubernetes/admission-dispatcher/mutate\n",
			"staticManifestsDir: /etc/kubernetes/admission-dispatcher/validate\n", "- name: \"dispatcher.example.com:8443\"\n", "client-certificate:", "client-key:",
		}, []string{"token:"}},
		{"a token", chain.Credentials{Token: true}, false, 2, []string{"token: \"\"", "kubeConfigFile:"}, []string{"client-certificate", "staticManifestsDir"}},
		{"a path secret", chain.Credentials{PathSecrets: []chain.PathSecretSum{sum}}, false, 1, []string{"presents nothing", "the secret in the path"}, []string{"kind:"}},
		{"nothing", chain.Credentials{}, false, 1, []string{"presents nothing", "anonymous"}, []string{"kind:"}},
		{"nothing, static", chain.Credentials{}, true, 1, []string{"presents nothing", "kind: AdmissionConfiguration", "staticManifestsDir:"}, []string{"kubeConfigFile", "kind: Config\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := registration.Caller(&chain.Cluster{Name: "east", Credentials: tt.has}, "dispatcher.example.com:8443", tt.static)
			got := string(registration.Stream(files))
			if len(files) != tt.files {
				t.Errorf("%d files", len(files))
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in\n%s", want, got)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(got, not) {
					t.Errorf("there is %q in\n%s", not, got)
				}
			}
		})
	}
}
