// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/png" // decodes what the browser writes
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/admin"
	"github.com/admission-dispatcher/dispatcher/internal/status"
)

func findBrowser(t *testing.T) string {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is missing: apt-get install --no-install-recommends chromium")
	}
	return browser
}

// The script gets past the page's own policy, and shows what has changed.
func TestRefresh(t *testing.T) {
	browser := findBrowser(t)
	var asked atomic.Int64
	server := httptest.NewServer(admin.NewPages(func() status.Status {
		if asked.Add(1) == 1 {
			return healthy()
		}
		return outage()
	}, slog.New(slog.DiscardHandler)))
	defer server.Close()
	page := text(string(browse(t, browser, "--dump-dom", "--virtual-time-budget=20000", server.URL)))
	if !strings.Contains(page, "Certificates live") || !strings.Contains(page, "Ready, with 4 critical notices") {
		t.Errorf("asked %d times, the page says\n%.300s", asked.Load(), page)
	}
}

// TestBrowser looks at the pages with headless Chromium, in light and dark, wide
// and narrow. SCREENSHOTS names a directory to keep what it sees.
func TestBrowser(t *testing.T) {
	browser := findBrowser(t)
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	for _, c := range []struct {
		name, path    string
		status        func() status.Status
		dark          bool
		width, height int
	}{
		{"overview-light", "/", healthy, false, 1280, 2100},
		{"overview-dark", "/", healthy, true, 1280, 2100},
		{"outage-light", "/", outage, false, 1280, 2900},
		{"outage-dark", "/", outage, true, 1280, 2900},
		{"outage-narrow", "/", outage, false, 390, 3000},
		{"dns-light", "/", nameless, false, 1280, 2100},
		{"recovering-light", "/", recovering, false, 1280, 2100},
		{"outage-of-a-webhook-light", "/webhooks/license-scan/licenses.scan.example.com", outage, false, 1280, 2100},
		{"webhook-light", "/webhooks/image-policy/images.policy.example.com", healthy, false, 1280, 1900},
		{"webhook-narrow-dark", "/webhooks/image-policy/images.policy.example.com", healthy, true, 390, 2600},
		{"cluster-light", "/clusters/prod-eu", healthy, false, 1280, 1300},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(admin.NewPages(c.status, slog.New(slog.DiscardHandler)))
			defer server.Close()
			scheme := 1
			if c.dark {
				scheme = 0
			}
			file := filepath.Join(dir, c.name+".png")
			browse(t, browser, fmt.Sprintf("--screenshot=%s", file), fmt.Sprintf("--window-size=%d,%d", c.width, c.height),
				fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme), server.URL+c.path)
			bright := brightness(t, file, c.width)
			if c.dark != (bright < 0.5) {
				t.Errorf("dark is %v, and the brightness is %.2f", c.dark, bright)
			}
		})
	}
}

// browse runs the browser once and returns what it prints.
func browse(t *testing.T, browser string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
		"--disable-background-networking", "--no-first-run", "--user-data-dir=" + t.TempDir()}, args...)
	cmd := exec.CommandContext(ctx, browser, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return stdout.Bytes()
}

// brightness returns the mean of a picture from 0 to 1.
func brightness(t *testing.T, file string, width int) float64 {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, _, err := image.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	b := picture.Bounds()
	if b.Dx() != width {
		t.Errorf("the picture is %d wide, not %d", b.Dx(), width)
	}
	sum, n := 0.0, 0.0
	for y := b.Min.Y; y < b.Max.Y; y += 7 {
		for x := b.Min.X; x < b.Max.X; x += 7 {
			r, g, blue, _ := picture.At(x, y).RGBA()
			sum += float64(r+g+blue) / (3 * 0xffff)
			n++
		}
	}
	return sum / n
}
