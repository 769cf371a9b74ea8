// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestE17Roots is where files may lie (E17): below a directory, however it is written
// and however many links lead there; never elsewhere.
func TestE17Roots(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		t.Helper()
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	put("source/plain")
	put("source/sub/deep")
	put("source/..2026_01/mounted")
	put("secrets/token")
	put("outside/token")
	put("source-of-another/token")
	link("source/..data", "..2026_01") // as kubelet mounts ConfigMaps and Secrets
	link("source/mounted", "..data/mounted")
	link("source/absolute", at("source/plain"))
	link("source/to-secrets", at("secrets/token"))
	link("source/out", "../outside/token")
	link("source/out-absolute", at("outside/token"))
	link("source/out-directory", "../outside")
	link("source/out-dangling", "../outside/none")
	link("other-name", "source")

	for _, tt := range []struct {
		path, want string
		reason     error
	}{
		{"source/plain", "source/plain", nil},
		{"source/sub/../plain", "source/plain", nil},
		{"source/sub/deep", "source/sub/deep", nil},
		{"source/mounted", "source/..2026_01/mounted", nil},
		{"source/absolute", "source/plain", nil},
		{"source/to-secrets", "secrets/token", nil},
		{"secrets/token", "secrets/token", nil},
		{"other-name/plain", "source/plain", nil},
		{"source/missing", "", os.ErrNotExist},
		{"source/out", "", errOutside},
		{"source/out-absolute", "", errOutside},
		{"source/out-directory/token", "", errOutside},
		{"outside/token", "", errOutside},
		{"outside/missing", "", errOutside}, // who asks does not learn what exists
		{"source/../outside/token", "", errOutside},
		{"source-of-another/token", "", errOutside},
		{"/etc/hostname", "", errOutside},
	} {
		path := tt.path
		if !filepath.IsAbs(path) {
			path = dir + "/" + path
		}
		within := openRoots(at("source"), at("secrets"), at("no such directory"))
		data, err := within.read(path)
		within.close()
		if string(data) != tt.want || !errors.Is(err, tt.reason) {
			t.Errorf("E17 %s: %q, %v; want %q, %v", tt.path, data, err, tt.want, tt.reason)
		}
	}
	byName := openRoots(at("other-name"))
	for _, path := range []string{"source/plain", "other-name/plain", "other-name/absolute"} {
		if data, err := byName.read(at(path)); string(data) != "source/plain" {
			t.Errorf("E17 %s below a link to its directory: %q, %v", path, data, err)
		}
	}
	if data, err := byName.read(at("outside/token")); !errors.Is(err, errOutside) {
		t.Errorf("E17 outside of a link's directory: %q, %v", data, err)
	}
	byName.close()
	within := openRoots(at("source"))
	defer within.close()
	if data, err := within.read(at("source/out-dangling")); err == nil {
		t.Errorf("E17 a dangling link: %q", data)
	}
	if err := os.Remove(at("source/plain")); err != nil {
		t.Fatal(err)
	}
	link("source/plain", "../outside/token") // swapped after the directory was opened
	if data, err := within.read(at("source/plain")); !errors.Is(err, errOutside) {
		t.Errorf("E17 a link that was swapped: %q, %v", data, err)
	}
}
