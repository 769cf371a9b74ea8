// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/config"
)

// minimal is the shortest file that is complete.
const minimal = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
tls: {certFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt}
sources: [{directory: registry}]
`

// load returns the Config of a file, which must be good.
func load(t *testing.T, text string) (cfg *config.Config, dir string) {
	t.Helper()
	path := write(t, text)
	cfg, problems := config.Load(path)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return cfg, filepath.Dir(path)
}

// problems returns what is wrong with a file, a line each, without its name.
func problems(t *testing.T, text string) []string {
	t.Helper()
	path := write(t, text)
	cfg, problems := config.Load(path)
	if (cfg == nil) != (len(problems) > 0) {
		t.Errorf("Config is %v with %d problems", cfg, len(problems))
	}
	var lines []string
	for _, p := range problems {
		if p.File != path {
			t.Errorf("problem of %q", p.File)
		}
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(p.String(), path+": "), config.Kind+": "))
	}
	return lines
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	cfg, dir := load(t, strings.Replace(minimal, "directory: registry", "directory: /etc/registry}, {directory: ../more", 1))
	got := []string{cfg.TLS.CertFile, cfg.TLS.KeyFile, cfg.TLS.ClientCAFile, cfg.Sources[0].Directory, cfg.Sources[1].Directory}
	want := []string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"),
		"/etc/registry", filepath.Join(filepath.Dir(dir), "more")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A mirror is a source, with a status of its own.
func TestMirror(t *testing.T) {
	cfg, dir := load(t, strings.Replace(minimal, "directory: registry", "directory: registry}, {mirror: copy", 1))
	if got := cfg.Mirror(); got != filepath.Join(dir, "copy") {
		t.Errorf("the mirror is %q", got)
	}
	if got := cfg.Registry(nil, nil).Sources[1].Name(); got != filepath.Join(dir, "copy", "current") {
		t.Errorf("its manifests are in %q", got)
	}
	if cfg, _ := load(t, minimal); cfg.Mirror() != "" {
		t.Errorf("there is a mirror in %q", cfg.Mirror())
	}
}

func TestZeroIsNotTheDefault(t *testing.T) {
	cfg, _ := load(t, minimal+"lameDuck: 0s\ndeadline: {grace: 0s}\nbypass: {defaults: false}\n")
	if cfg.LameDuck.Duration != 0 || cfg.Deadline.Grace.Duration != 0 || cfg.Bypass.Defaults {
		t.Errorf("lameDuck %v, grace %v, defaults %v", cfg.LameDuck, cfg.Deadline.Grace, cfg.Bypass.Defaults)
	}
	cfg, _ = load(t, minimal+"lameDuck: null\ndeadline: {}\n")
	if cfg.LameDuck.String() != "10s" || cfg.Deadline.Grace.String() != "100ms" || cfg.Deadline.Max.String() != "30s" {
		t.Errorf("lameDuck %v, deadline %v", cfg.LameDuck, cfg.Deadline)
	}
}

func TestSettings(t *testing.T) {
	rules := func(cfg *config.Config) (names []string) {
		for _, r := range cfg.Registry(nil, nil).Compile.Bypass {
			names = append(names, r.Name)
		}
		return names
	}
	cfg, _ := load(t, minimal+`listen: :9443
admin: {listen: "localhost:0"}
bypass: {dispatcherNamespace: dispatcher, rules: [{name: ours, users: [ann]}]}
`)
	want := []string{"apiserver", "system-namespaces", "leases", "node-heartbeats", "dispatcher-namespace", "ours"}
	if diff := cmp.Diff(want, rules(cfg)); diff != "" {
		t.Error(diff)
	}
	failOpen := func(cfg *config.Config) (names []string) {
		for _, r := range cfg.Registry(nil, nil).Compile.FailOpen {
			names = append(names, r.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"node-bootstrap", "node-controllers", "control-plane"}, failOpen(cfg)); diff != "" {
		t.Error(diff)
	}
	if own := cfg.Registry(nil, nil).Compile.Addresses.Own; len(own) != 1 || own[0].String() != "[::]:9443" {
		t.Errorf("own listeners %v", own)
	}
	cfg, _ = load(t, minimal+`bypass: {defaults: false, rules: [{name: ours, users: [ann]}]}
failOpen: {defaults: false, rules: [{name: break-glass, groups: [oncall]}]}
`)
	if diff := cmp.Diff([]string{"break-glass"}, failOpen(cfg)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ours"}, rules(cfg)); diff != "" {
		t.Error(diff)
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"everything that is missing": {"{}", []string{
			"apiVersion: Required value: must be dispatcher.dev/v1alpha1",
			"kind: Required value: must be DispatcherConfiguration",
			"tls.certFile: Required value: the admission listener serves TLS only",
			"tls.keyFile: Required value: the admission listener serves TLS only",
			"tls.clientCAFile: Required value: without it no client certificate can be verified; where all clusters use tokens set clientAuth: IfGiven",
			"sources: Required value: name at least one directory",
		}},
		"E7 unknown field":     {minimal + "admin: {lisen: x, listen: 127.0.0.1:1}", []string{"admin.lisen: unknown field"}},
		"E7 case variant":      {minimal + "Listen: :1", []string{"Listen: unknown field"}},
		"E7 duplicate key":     {minimal + "listen: :1\nlisten: :2", []string{`yaml: unmarshal errors: line 6: key "listen" already set in map`}},
		"E7 second document":   {minimal + "---\nlisten: :1", []string{"must hold one document, not 2"}},
		"empty file":           {"", []string{"must hold one document, not 0"}},
		"not an object":        {"[1]", []string{"must be one object: json: cannot unmarshal array into Go value of type config.Config"}},
		"not YAML":             {"a: b: c", []string{"yaml: mapping values are not allowed in this context"}},
		"wrong type, and more": {minimal + "limits: {connections: many}\nlameDuck: -1s", []string{"limits.connections: must not be a string", `lameDuck: "-1s": Invalid value: must not be negative`}},
		"mirrors": {strings.Replace(minimal, "{directory: registry}", "{mirror: a, directory: b}, {mirror: c}, {}", 1), []string{
			"sources[0].directory: Forbidden: a source has a directory or a mirror",
			"sources[1].mirror: Forbidden: there is one mirror at most",
			"sources[2].directory: Required value",
		}},
		"wrong type, not also missing": {strings.Replace(minimal, "sources: [{directory: registry}]", "sources: registry", 1),
			[]string{"sources: must not be a string"}},
		"other kind": {strings.Replace(minimal, "kind: Dispatcher", "kind: Other", 1),
			[]string{`kind: "OtherConfiguration": Unsupported value: supported values: "DispatcherConfiguration"`}},
		"E14 a key in place of its file": {strings.Replace(minimal, "keyFile: tls.key", `keyFile: "-----BEGIN PRIVATE KEY-----"`, 1),
			[]string{"tls.keyFile: Forbidden: must be a file reference"}},
		"fleet": {minimal + "fleet: {replicas: 1001, callsPerEndpoint: -1, admissionsPerCluster: -2}\ncell: East.eu\n", []string{
			`cell: "East.eu": Invalid value: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			`fleet.replicas: "1001": Invalid value: must be at most 1000`,
			`fleet.callsPerEndpoint: "-1": Invalid value: must not be negative`,
			`fleet.admissionsPerCluster: "-2": Invalid value: must not be negative`,
		}},
		"limits of a fleet of unknown size": {minimal + "fleet: {callsPerEndpoint: 512}\n", []string{
			"fleet.replicas: Required value: set replicas or file: without them nobody knows of how many replicas the limits are",
		}},
		"a key in place of the fleet's file": {minimal + `fleet: {file: "-----BEGIN PRIVATE KEY-----"}`, []string{"fleet.file: Forbidden: must be a file reference"}},
		"durations": {minimal + "reloadInterval: 1ms\nlameDuck: 10\ndeadline: {default: 0s, max: 31s, grace: soon}\ntimeouts: {idle: 0s}\ndns: {interval: [], timeout: -5s}\n", []string{
			`reloadInterval: "1ms": Invalid value: must be at least 10ms`,
			`deadline.default: "0s": Invalid value: must be above zero`,
			`deadline.grace: "\"soon\"": Invalid value: must be a duration such as 2s or 250ms`,
			`deadline.max: "31s": Invalid value: must be at most 30s, the longest that kube-apiserver waits`,
			`timeouts.idle: "0s": Invalid value: must be above zero`,
			`lameDuck: "10": Invalid value: must be a duration such as 2s or 250ms`,
			`dns.interval: "[]": Invalid value: must be a duration such as 2s or 250ms`,
			`dns.timeout: "-5s": Invalid value: must not be negative`,
		}},
		"addresses": {minimal + "listen: \"8443\"\nadmin: {listen: ':70000'}\ndns: {server: '10.0.0.10:0'}\nallowedNetworks: [10.0.0.1, '::ffff:127.0.0.0/104', 10.0.0.0/8]\n", []string{
			`listen: "8443": Invalid value: must be host:port`,
			`admin.listen: ":70000": Invalid value: the port must be a number up to 65535`,
			`allowedNetworks[0]: "10.0.0.1": Invalid value: must be a CIDR such as 127.0.0.0/8 or fd00::/8`,
			`allowedNetworks[1]: "::ffff:127.0.0.0/104": Invalid value: must be a CIDR such as 127.0.0.0/8 or fd00::/8`,
			`dns.server: "10.0.0.10:0": Invalid value: the port must be a number up to 65535`,
		}},
		"one address for both": {minimal + "listen: :8443\nadmin: {listen: ':8443'}", []string{`admin.listen: ":8443": Invalid value: must be another address than listen`}},
		"rules": {minimal + "bypass: {defaults: false, dispatcherNamespace: Our, rules: [{name: a, extraKeys: [x]}]}\nfailOpen: {rules: [{users: [ann]}]}\n", []string{
			"bypass.rules[0].extraKeys: Forbidden: only failOpen rules may look at userInfo.extra",
			"bypass.dispatcherNamespace: Forbidden: belongs to the built-in rules, and bypass.defaults is false; write a rule",
			`bypass.dispatcherNamespace: "Our": Invalid value: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			"failOpen.rules[0].name: Required value: names the rule wherever it decides",
		}},
		"limits, level, sources": {minimal + "limits: {requestBytes: -1, responseBytes: 0, connections: 0, shadowCalls: 0}\nlog: {level: trace}\n", []string{
			`limits.requestBytes: "-1": Invalid value: must be above zero`,
			`limits.responseBytes: "0": Invalid value: must be above zero`,
			`limits.connections: "0": Invalid value: must be above zero`,
			`limits.shadowCalls: "0": Invalid value: must be above zero`,
			`log.level: "trace": Unsupported value: supported values: "debug", "info", "warn", "error"`,
		}},
		"too little memory": {minimal + "limits: {requestBytes: 1000, bodyBytes: 3999}\n", []string{
			`limits.bodyBytes: "3999": Invalid value: must be at least four times limits.requestBytes`,
		}},
		"less than one review": {minimal + "limits: {requestBytes: 1000, reviewBytes: 999}\n", []string{
			`limits.reviewBytes: "999": Invalid value: must be at least limits.requestBytes, or the largest reviews are always shed`,
		}},
		"enough memory": {minimal + "limits: {requestBytes: 1000, bodyBytes: 4000, reviewBytes: 1000}\n", nil},
		"clientAuth": {strings.Replace(minimal, "clientCAFile: ca.crt", "clientAuth: Maybe", 1),
			[]string{`tls.clientAuth: "Maybe": Unsupported value: supported values: "Require", "IfGiven"`}},
		"tokens only": {strings.Replace(minimal, "clientCAFile: ca.crt", "clientAuth: IfGiven", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, problems(t, c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	cfg, problems := config.Load(path)
	if cfg != nil || len(problems) != 1 || problems[0].Reason != "cannot be read: no such file or directory" {
		t.Errorf("Load: %v, %v", cfg, problems)
	}
}
