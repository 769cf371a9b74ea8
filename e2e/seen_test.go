// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

const twoPolicies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policies}
webhooks:
- name: first.e2e.example.com
  clientConfig: {url: "$URL/first", caBundle: $CA}
  rules: &rules [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: second.e2e.example.com
  clientConfig: {url: "$URL/second", caBundle: $CA}
  rules: *rules
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`

// kubectl runs kubectl and returns what it prints, of both kinds.
func (c *cluster) kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.programs.kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+c.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// What a user reads in a terminal: every denial, warnings, and the webhook that
// failed open, each with its webhook's name.
func TestWhatKubectlPrints(t *testing.T) {
	c := shared.east
	dispatch(t, []*cluster{c}, twoPolicies)
	namespace := c.namespace(t, nil)
	create := func(name string) (string, error) {
		return c.kubectl(t, "create", "secret", "generic", name, "-n", namespace, "--from-literal=a=b")
	}
	for _, row := range []struct {
		name          string
		first, second decide
		fails         bool
		want          []string
	}{
		{"two denials", deny(http.StatusForbidden, "no owner"), deny(http.StatusForbidden, "no region"), true, []string{
			`error: failed to create secret admission webhook "validate.admission-dispatcher.dispatcher.dev" denied the request: admission webhook "first.e2e.example.com" denied the request: no owner` + "\n" +
				`admission webhook "second.e2e.example.com" denied the request: no region`,
		}},
		{"a warning", warn("prefer another name"), allow, false, []string{"Warning: ", "prefer another name", "secret/a-warning created"}},
		{"failed open", allow, nil, false, []string{"Warning: ", `failed calling webhook "second.e2e.example.com"`, "secret/failed-open created"}},
		{"failed closed", nil, allow, true, []string{`failed calling webhook "first.e2e.example.com"`, "platform"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			shared.webhooks.handle("/first", row.first)
			shared.webhooks.handle("/second", row.second)
			out, err := create(strings.ReplaceAll(row.name, " ", "-"))
			if (err != nil) != row.fails {
				t.Errorf("kubectl: %v", err)
			}
			for _, want := range row.want {
				if !strings.Contains(out, want) {
					t.Errorf("kubectl does not print %q, but:\n%s", want, out)
				}
			}
		})
	}
}

func warn(text string) decide {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{text}}
	}
}

// The apiserver's own audit log says which webhook failed open, what webhooks
// annotate, and which configuration decided.
func TestWhatTheAuditLogSays(t *testing.T) {
	c := shared.east
	dispatch(t, []*cluster{c}, twoPolicies)
	namespace := c.namespace(t, nil)
	shared.webhooks.handle("/first", func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, AuditAnnotations: map[string]string{"rule": "owner"}}
	})
	shared.webhooks.handle("/second", nil) // 404
	if out, err := c.kubectl(t, "create", "secret", "generic", "audited", "-n", namespace); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const ours = "validate.admission-dispatcher.dispatcher.dev/"
	eventually(t, "the audit log has the event", func() error {
		annotations, err := c.audited(namespace, "secrets")
		if err != nil {
			return err
		}
		if annotations[ours+"first.e2e.example.com.rule"] != "owner" {
			return fmt.Errorf("the webhook's annotation is missing: %v", annotations)
		}
		if !strings.Contains(annotations[ours+"dispatcher.dev.failed-open"], "/second.e2e.example.com (") {
			return fmt.Errorf("failing open is not said: %v", annotations)
		}
		if annotations[ours+"dispatcher.dev.snapshot"] == "" {
			return fmt.Errorf("the configuration is not named: %v", annotations)
		}
		return nil
	})
}

// audited returns the annotations of the event of a create.
func (c *cluster) audited(namespace, resource string) (map[string]string, error) {
	log, err := os.Open(c.audit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb        string
			ObjectRef   struct{ Namespace, Resource string }
			Annotations map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the last line is being written
		}
		if event.Verb == "create" && event.ObjectRef.Namespace == namespace && event.ObjectRef.Resource == resource {
			return event.Annotations, nil
		}
	}
	return nil, fmt.Errorf("no create of %s in %s in %s", resource, namespace, c.audit)
}
