// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/config"
)

// minimal is a configuration that says only what is required.
const minimal = `
apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
tls: {certFile: a.crt, keyFile: /abs/a.key, clientCAFile: ca.crt}
sources: [{directory: registry}]
`

func TestDefaults(t *testing.T) {
	path := write(t, minimal)
	cfg, problems := config.Load(path)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	dir := filepath.Dir(path)
	got := map[string]any{
		"listen": cfg.Listen, "admin": cfg.Admin.Listen, "auth": cfg.TLS.ClientAuth, "cert": cfg.TLS.CertFile, "key": cfg.TLS.KeyFile,
		"lameDuck": cfg.LameDuck.Duration, "grace": cfg.Deadline.Grace.Duration, "max": cfg.Deadline.Max.Duration,
		"idle": cfg.Timeouts.Idle.Duration, "bypass": *cfg.Bypass.Defaults, "body": cfg.Limits.RequestBytes,
		"source": cfg.Sources[0].Directory,
	}
	want := map[string]any{
		"listen": ":8443", "admin": "127.0.0.1:8081", "auth": "Require", "cert": filepath.Join(dir, "a.crt"), "key": "/abs/a.key",
		"lameDuck": 10 * time.Second, "grace": 100 * time.Millisecond, "max": 30 * time.Second,
		"idle": 120 * time.Second, "bypass": true, "body": 8 << 20,
		"source": filepath.Join(dir, "registry"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestZeroIsSaid(t *testing.T) {
	cfg, problems := config.Load(write(t, minimal+"lameDuck: 0s\ndeadline: {grace: 0s}\nbypass: {defaults: false}\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if cfg.LameDuck.Duration != 0 || cfg.Deadline.Grace.Duration != 0 || *cfg.Bypass.Defaults {
		t.Errorf("a zero that was said became a default: %v %v %v", cfg.LameDuck, cfg.Deadline.Grace, *cfg.Bypass.Defaults)
	}
	if rules := cfg.Registry(nil, nil).Bypass; len(rules) != 0 {
		t.Errorf("bypass without defaults has rules %v", rules)
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct{ name, more, want string }{
		{"unknown field", "listn: x", `unknown field "listn"`},
		{"other spelling", "Listen: ':1'", `unknown field "Listen"`},
		{"duplicate field", "listen: ':1'\nlisten: ':2'", `key "listen" already set`},
		{"not YAML", "listen: [", "did not find expected"},
		{"address without port", "listen: localhost", `listen: "localhost": Invalid value: must be host:port`},
		{"port out of range", "admin: {listen: ':65536'}", "admin.listen: "},
		{"CIDR", "allowedNetworks: [10.0.0.1]", "allowedNetworks[0]: "},
		{"negative duration", "timeouts: {body: -1s}", "timeouts.body: "},
		{"duration without unit", "lameDuck: '10'", "missing unit"},
		{"deadline above the caller's", "deadline: {max: 31s}", "deadline.max: "},
		{"default above max", "deadline: {default: 9s, max: 8s}", "deadline.default: "},
		{"rule without field", "bypass: {rules: [{name: all}]}", "bypass.rules[0]: Required value"},
		{"rule without name", "failOpen: [{users: [a]}]", "failOpen[0].name: Required value"},
		{"extra keys in a bypass", "bypass: {rules: [{name: a, extraKeys: [k]}]}", "bypass.rules[0].extraKeys: Forbidden"},
		{"level", "log: {level: loud}", "log.level: "},
		{"negative limit", "limits: {connections: -1}", "limits.connections: "},
		{"dns server", "dns: {server: here}", "dns.server: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := config.Load(write(t, minimal+c.more+"\n"))
			var texts []string
			for _, p := range problems {
				texts = append(texts, p.String())
			}
			if all := strings.Join(texts, "\n"); !strings.Contains(all, c.want) {
				t.Errorf("problems are\n%s\nwant one with %q", all, c.want)
			}
		})
	}
}

// All problems are reported at once, sorted by field.
func TestAllProblems(t *testing.T) {
	_, problems := config.Load(write(t, "kind: Other\nlisten: x\ntls: {clientAuth: Maybe}\n"))
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	want := []string{"apiVersion", "kind", "listen", "sources", "tls.certFile", "tls.clientAuth", "tls.keyFile"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestMissingFile(t *testing.T) {
	_, problems := config.Load(filepath.Join(t.TempDir(), "nowhere.yaml"))
	if len(problems) != 1 || !strings.Contains(problems[0].Reason, "cannot be read") {
		t.Errorf("problems are %v", problems)
	}
}
