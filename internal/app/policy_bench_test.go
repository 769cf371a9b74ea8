// SPDX-License-Identifier: Apache-2.0

//go:build linux

package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

const fiveValidations = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: pods}
spec:
  matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
  variables: [{name: containers, expression: "object.spec.containers + object.spec.?initContainers.orValue([])"}]
  validations:
  - {expression: "variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))"}
  - {expression: "variables.containers.all(c, !c.image.endsWith(':latest'))"}
  - {expression: "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false)"}
  - {expression: "!('example.com/exempt' in object.metadata.?labels.orValue({}))"}
  - {expression: "request.userInfo.username != '' && size(variables.containers) < 50"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: pods}
spec: {policyName: pods, validationActions: [Deny]}
`

// validated is a webhook as most are written, with the same five rules.
func validated(rw http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var pod corev1.Pod
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
		http.Error(rw, "bad request", http.StatusBadRequest)
		return
	}
	allowed := !pod.Spec.HostNetwork && !pod.Spec.HostPID && review.Request.UserInfo.Username != ""
	containers := append(pod.Spec.Containers, pod.Spec.InitContainers...)
	for i := range containers {
		c := &containers[i]
		privileged := c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
		allowed = allowed && !privileged && !strings.HasSuffix(c.Image, ":latest")
	}
	_, exempt := pod.Labels["example.com/exempt"]
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: allowed && !exempt && len(containers) < 50}
	review.Request = nil
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(&review) // the caller sees that it broke off
}

// BenchmarkInPlaceOfAWebhook is P19: the CPU that a policy adds to an admission that
// nobody else is asked about, and that which a webhook adds, its own included.
func BenchmarkInPlaceOfAWebhook(b *testing.B) {
	askers := map[string]func(){}
	for _, name := range []string{"none", "policy", "webhook"} {
		w := newWorld(b)
		manifest := "# nothing\n"
		switch name {
		case "policy":
			manifest = fiveValidations
		case "webhook":
			server := w.newWebhook(w.authority, pki.OnLoopback("webhook"), validated)
			server.StartTLS()
			ca, _ := json.Marshal(w.authority.PEM)
			manifest = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: policy}\nwebhooks:\n" +
				fmt.Sprintf(terseWebhook, 0, strings.TrimPrefix(server.URL, "https://"), ca)
		}
		w.write("registry/webhooks.yaml", []byte(manifest))
		askers[name] = w.asker()
	}
	const batch = 50
	spent, n := map[string]time.Duration{}, 0
	for b.Loop() {
		n += batch
		for name, ask := range askers {
			begin := processorTime(b)
			for range batch {
				ask()
			}
			spent[name] += processorTime(b) - begin
		}
	}
	for _, name := range []string{"policy", "webhook"} {
		b.ReportMetric(float64((spent[name]-spent["none"]).Microseconds())/float64(n), name+"-us/op")
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
