// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestImage(t *testing.T) {
	all := images(t)
	if len(all) != 2 {
		t.Fatalf("%d architectures", len(all))
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		t.Run(architecture, func(t *testing.T) { checkImage(t, architecture, all[architecture]) })
	}
}

func checkImage(t *testing.T, architecture string, image v1.Image) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != architecture || config.OS != "linux" || config.Created.Unix() != 1700000000 {
		t.Errorf("%s/%s of %v", config.OS, config.Architecture, config.Created)
	}
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/dispatcher"}) || len(c.Env) > 0 {
		t.Errorf("it runs as %q %q with %q", c.User, c.Entrypoint, c.Env)
	}
	for label, want := range map[string]string{
		"org.opencontainers.image.version":  "v1.2.3+dirty",
		"org.opencontainers.image.revision": "abc",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.created":  "2023-11-14T22:13:20Z",
	} {
		if got := config.Config.Labels[label]; got != want {
			t.Errorf("label %s is %q, not %q", label, got, want)
		}
	}
	var names []string
	contents(t, image, func(h *tar.Header, r io.Reader) {
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Mode&0o022 != 0 || h.Mode&0o004 == 0 {
			t.Errorf("%s belongs to %d:%d, mode %o", h.Name, h.Uid, h.Gid, h.Mode)
		}
		switch text, err := io.ReadAll(r); {
		case err != nil:
			t.Fatal(err)
		case h.Name == "sbom.spdx.json":
			checkBill(t, text)
		case h.Name == "licenses/THIRD-PARTY":
			checkLicences(t, string(text))
		}
	})
	if want := []string{"dispatcher", "dispatcher-kube", "licenses/", "licenses/LICENSE", "licenses/THIRD-PARTY", "sbom.spdx.json"}; !slices.Equal(names, want) {
		t.Errorf("it has %q, not %q", names, want)
	}
}

// checkBill looks for what is known to be linked.
func checkBill(t *testing.T, text []byte) {
	var bill spdxDocument
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	seen, versions := map[string]bool{}, map[string]string{}
	for _, p := range bill.Packages {
		if seen[p.ID] || p.Version == "" {
			t.Errorf("package %s is there twice, or has no version", p.ID)
		}
		seen[p.ID], versions[p.Name] = true, p.Version
	}
	for _, name := range []string{"stdlib", "k8s.io/client-go", "github.com/valyala/fasthttp", "github.com/google/cel-go", "golang.org/x/crypto/x509roots/fallback"} {
		if versions[name] == "" {
			t.Errorf("the bill of materials lacks %s", name)
		}
	}
	for _, program := range []string{"dispatcher", "dispatcher-kube"} {
		if got := versions["github.com/admission-dispatcher/dispatcher/cmd/"+program]; got != "v1.2.3+dirty" {
			t.Errorf("%s itself has version %q", program, got)
		}
	}
	for _, r := range bill.Relationships {
		if r.Element != "SPDXRef-DOCUMENT" && !seen[r.Element] || !seen[r.Related] {
			t.Errorf("%v is about what is not there", r)
		}
	}
}

func checkLicences(t *testing.T, text string) {
	for _, module := range []string{"go1.", "github.com/valyala/fasthttp@", "k8s.io/apiserver@", "golang.org/x/crypto/x509roots/fallback@"} {
		if !strings.Contains(text, "\n==== "+module) && !strings.HasPrefix(text, "==== "+module) {
			t.Errorf("there is no licence of %s", module)
		}
	}
}

// Built once more, from the same files in another directory: the same digest.
func TestReproducible(t *testing.T) {
	first, err := made()
	if err != nil {
		t.Fatal(err)
	}
	repository := t.TempDir()
	copyTracked(t, repository)
	second, err := build(repository, "again")
	if err != nil {
		t.Fatal(err)
	}
	a, err := index(t, first).Digest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := index(t, second).Digest()
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Errorf("two builds gave %s and %s", a, b)
	}
}

// copyTracked copies what a build reads of the repository.
func copyTracked(t *testing.T, to string) {
	t.Helper()
	listed, err := exec.Command("git", "-C", "../..", "ls-files", "--cached", "--others", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(listed), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPush(t *testing.T) {
	dir, err := made()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New())
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/team/admission-dispatcher:v1.2.3"
	if err := upload(to, index(t, dir)); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pushed); err != nil {
		t.Error(err)
	}
}

// What would not run in an image without anything else is refused.
func TestBinaries(t *testing.T) {
	dynamic := filepath.Join(t.TempDir(), "dynamic")
	cmd := exec.Command("go", "build", "-o", dynamic, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for path, want := range map[string]string{
		dynamic:         "-trimpath=, not true",
		"../../LICENSE": "LICENSE: ",
	} {
		err := run([]string{"-o", filepath.Join(t.TempDir(), "oci"), "-root", "../..", path})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
