// SPDX-License-Identifier: Apache-2.0

package podsecurity_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// caller is a cluster of a version, with one namespace.
type caller struct {
	minor  int
	labels map[string]string
	err    error
}

func (c caller) StoredLabels(name string, deadline time.Time) (map[string]string, error) {
	if name != "shop" || !deadline.IsZero() {
		return nil, errors.New("another namespace, or a deadline that nobody has set")
	}
	return c.labels, c.err
}

func (c caller) Version() (major, minor int) { return min(1, c.minor), c.minor }

const pod = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":{"metadata":{"name":"web"},"spec":SPEC}}}`

func ask(t *testing.T, c caller, spec string) (answer plugin.Answer) {
	t.Helper()
	validator, errs := podsecurity.New(podsecurity.Configuration{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	err := plugin.WithReview([]byte(strings.Replace(pod, "SPEC", spec, 1)), c, func(a *plugin.Attributes) {
		var err error
		if answer, err = validator.Validate(t.Context(), a); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// K8 "latest" is what the cluster's API servers take it for: a check of Kubernetes 1.34
// holds from there on, and where the version is not known.
func TestK8LatestIsTheClusters(t *testing.T) {
	const probed = `{"containers":[{"name":"a","image":"a","livenessProbe":{"httpGet":{"port":80,"host":"example.com"}}}]}`
	for minor, denied := range map[int]bool{0: true, 33: false, 34: true, 37: true, 2000: true} {
		got := ask(t, caller{minor: minor, labels: map[string]string{api.EnforceLevelLabel: "baseline"}}, probed)
		if (got.Denied != nil) != denied {
			t.Errorf("1.%d: %+v", minor, got)
		}
	}
	if got := ask(t, caller{labels: map[string]string{api.EnforceLevelLabel: "baseline", api.EnforceVersionLabel: "v1.33"}}, probed); got.Denied != nil {
		t.Errorf("with a version of its own: %+v", got)
	}
}

// K8 Without the namespace a pod is denied as kube-apiserver does, and says why.
func TestK8NamespaceIsNotKnown(t *testing.T) {
	got := ask(t, caller{err: errors.New("stale")}, "{}")
	if got.Denied == nil || got.Denied.Code != 500 || got.Denied.Message != `Internal error occurred: failed to lookup namespace "shop"` ||
		got.Annotations["error"] != `Internal error occurred: failed to lookup namespace "shop": stale` {
		t.Errorf("%+v", got)
	}
}

// All labels that it reads are among those that clusters supply.
func TestLabelsAreNamed(t *testing.T) {
	want := []string{"audit", "audit-version", "enforce", "enforce-version", "warn", "warn-version"}
	var got []string
	for _, label := range podsecurity.Plugin().NamespaceLabels {
		got = append(got, strings.TrimPrefix(label, "pod-security.kubernetes.io/"))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// K1 A configuration is kube-apiserver's, in any of its versions.
func TestK1Configuration(t *testing.T) {
	w := hook.NewWorkers(0)
	defer w.Close()
	const header = "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration"
	for text, want := range map[string]string{
		"{}":         "",
		header + "}": "",
		strings.Replace(header, "/v1", "/v1beta1", 1) + ", defaults: {enforce: baseline, enforce-version: v1.30, audit: restricted, warn: privileged, warn-version: latest}, " +
			"exemptions: {usernames: [a, b], namespaces: [kube-system], runtimeClasses: [kata.x]}}": "",
		strings.Replace(header, "/v1", "/v2", 1) + "}": `apiVersion: Unsupported value: "pod-security.admission.config.k8s.io/v2": supported values: "pod-security.admission.config.k8s.io/v1"`,
		"{kind: Pod}":                                      `kind: Unsupported value: "Pod": supported values: "PodSecurityConfiguration"`,
		"{defaults: {enforce: strict}}":                    `defaults.enforce: Invalid value: "strict": must be one of privileged, baseline, restricted`,
		"{defaults: {warn-version: '1.30'}}":               `defaults.warn-version: Invalid value: "1.30": must be "latest" or "v1.x"`,
		"{defaults: {audit: Baseline, audit-version: v2}}": `defaults.audit: Invalid value: "Baseline": must be one of privileged, baseline, restricted; defaults.audit-version: Invalid value: "v2": must be "latest" or "v1.x"`,
		"{exemptions: {usernames: [a, '', a]}}":            `exemptions.usernames[1]: Invalid value: "": username must not be empty; exemptions.usernames[2]: Duplicate value: "a"`,
		"{exemptions: {namespaces: [a, a]}}":               `exemptions.namespaces[1]: Duplicate value: "a"`,
		"{defaults: {enforceVersion: v1.30}}":              `unknown field "defaults.enforceVersion"`,
	} {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, invalid, undecodable := podsecurity.Plugin().Configure(raw, w)
		var got []string
		for _, e := range invalid {
			got = append(got, e.Error())
		}
		for _, e := range undecodable {
			got = append(got, e.Error())
		}
		if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, bad := range []string{"{exemptions: {namespaces: [A]}}", "{exemptions: {runtimeClasses: ['a b']}}"} {
		raw, _ := yaml.YAMLToJSON([]byte(bad))
		if _, invalid, _ := podsecurity.Plugin().Configure(raw, w); len(invalid) != 1 || !strings.HasSuffix(fmt.Sprint(invalid[0].Field), "[0]") {
			t.Errorf("%s: %v", bad, invalid)
		}
	}
}
