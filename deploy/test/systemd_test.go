// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const unit = "../systemd/admission-dispatcher.service"

// TestUnit: the unit has the same life cycle as the chart, and systemd takes it.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	setting := func(name string) string {
		found := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindSubmatch(text)
		if found == nil {
			return ""
		}
		return string(found[1])
	}
	pod := mustRender(t, nil)
	if seconds, err := strconv.Atoi(setting("TimeoutStopSec")); err != nil || !strings.Contains(pod["deployment.yaml"], "terminationGracePeriodSeconds: "+strconv.Itoa(seconds)+"\n") {
		t.Errorf("TimeoutStopSec=%s is not the chart's", setting("TimeoutStopSec"))
	}
	for name, want := range map[string]string{"CPUQuota": "", "MemoryMax": "2G", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "DynamicUser": "yes", "ProtectSystem": "strict", "KillMode": "mixed"} {
		if got := setting(name); got != want {
			t.Errorf("%s=%s, not %q", name, got, want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: systemd does not judge the unit")
	}
	// It looks whether the program is there.
	here := filepath.Join(t.TempDir(), filepath.Base(unit))
	if err := os.WriteFile(here, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/dispatcher", "/bin/sh")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", here).CombinedOutput(); err != nil || strings.Contains(string(out), "admission-dispatcher") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// 10 is a service without any protection.
	if out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=20", here).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
