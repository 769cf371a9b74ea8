// SPDX-License-Identifier: Apache-2.0

// Package podsecurity_test compares the plugin PodSecurity with the admission package of
// k8s.io/pod-security-admission, which kube-apiserver's plugin is made of.
package podsecurity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/pod-security-admission/admission"
	admissionapi "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// pairs is how many random requests are compared, unless CONFORMANCE_N says another number.
const pairs = 20_000

// request is one request with what is known of its cluster.
type request struct {
	hook.Caller // for what is not asked
	sample.Request

	user          string
	labels        map[string]string // nil: the namespace is not known
	minor         int               // of Kubernetes; 0: not known
	configuration podsecurity.Configuration
}

// StoredLabels implements hook.Caller.
func (q *request) StoredLabels(string, time.Time) (map[string]string, error) {
	if q.labels == nil {
		return nil, errUnknown
	}
	return q.labels, nil
}

// Version implements hook.Caller.
func (q *request) Version() (major, minor int) {
	if q.minor == 0 {
		return 0, 0
	}
	return 1, q.minor
}

var errUnknown = errors.New("not found")

// GetNamespace implements admission.NamespaceGetter.
func (q *request) GetNamespace(_ context.Context, name string) (*corev1.Namespace, error) {
	if q.labels == nil {
		return nil, errUnknown
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: q.labels}}, nil
}

// ListPods implements admission.PodLister. What it says marks the one answer that differs:
// the plugin has no list of pods.
func (*request) ListPods(context.Context, string) ([]*corev1.Pod, error) { return nil, errUnknown }

func randomRequest(d sample.Dice) *request {
	q := &request{
		Request: *sample.PodSecurity(d), user: sample.Pick(d, "ann", "ann", "ann", "robot"), labels: sample.Levels(d), minor: sample.Pick(d, 0, 22, 30, 33, 34, 36, 37, 99),
	}
	if d.One(20) {
		q.labels = nil
	}
	q.configuration.Exemptions = podsecurity.Exemptions{Usernames: []string{"robot"}, Namespaces: []string{"exempt"}, RuntimeClasses: []string{"gvisor"}}
	if d.One(2) {
		q.configuration.Defaults = podsecurity.Defaults{
			Enforce: sample.Pick(d, "", "baseline", "restricted"), EnforceVersion: sample.Pick(d, "", "latest", "v1.25"),
			Audit: sample.Pick(d, "", "baseline", "restricted"), Warn: sample.Pick(d, "", "baseline", "restricted"), WarnVersion: sample.Pick(d, "", "v1.19"),
		}
	}
	return q
}

// review is the request as kube-apiserver sends it.
func (q *request) review(t *testing.T) []byte {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		UID: "u-1", Kind: metav1.GroupVersionKind{Group: q.Resource.Group, Version: q.Resource.Version, Kind: q.Kind}, Resource: metav1.GroupVersionResource(q.Resource),
		SubResource: q.Subresource, Name: q.Name, Namespace: q.Namespace, Operation: q.Operation,
		Object: runtime.RawExtension{Object: q.Object}, OldObject: runtime.RawExtension{Object: q.Old},
	}
	request.UserInfo.Username = q.user
	text, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ours is the answer of the plugin.
func (q *request) ours(t *testing.T) (answer plugin.Answer) {
	t.Helper()
	validator, errs := podsecurity.New(q.configuration)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	err := plugin.WithReview(q.review(t), q, func(a *plugin.Attributes) {
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

// theirs is the answer of the admission package.
func (q *request) theirs(t *testing.T) (answer plugin.Answer) {
	t.Helper()
	gr := q.Resource.GroupResource()
	if gr.Resource != "pods" && gr.Resource != "namespaces" && !(admission.DefaultPodSpecExtractor{}).HasPodSpec(gr) {
		return plugin.Answer{} // kube-apiserver's plugin does not ask
	}
	var emulated *api.Version
	if q.minor > 0 {
		emulated = new(api.MajorMinorVersion(1, q.minor))
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), emulated)
	if err != nil {
		t.Fatal(err)
	}
	d := q.configuration.Defaults
	or := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	a := &admission.Admission{
		Configuration: &admissionapi.PodSecurityConfiguration{
			Defaults: admissionapi.PodSecurityDefaults{
				Enforce: or(d.Enforce, "privileged"), EnforceVersion: or(d.EnforceVersion, "latest"), Audit: or(d.Audit, "privileged"),
				AuditVersion: or(d.AuditVersion, "latest"), Warn: or(d.Warn, "privileged"), WarnVersion: or(d.WarnVersion, "latest"),
			},
			Exemptions: admissionapi.PodSecurityExemptions(q.configuration.Exemptions),
		},
		Evaluator: evaluator, Metrics: unrecorded{}, NamespaceGetter: q, PodLister: q,
	}
	if err := errors.Join(a.CompleteConfiguration(), a.ValidateConfiguration()); err != nil {
		t.Fatal(err)
	}
	response := a.Validate(t.Context(), &api.AttributesRecord{
		Name: q.Name, Namespace: q.Namespace, Kind: q.Resource.GroupVersion().WithKind(q.Kind), Resource: q.Resource, Subresource: q.Subresource,
		Operation: q.Operation, Object: q.Object, OldObject: q.Old, Username: q.user,
	})
	answer = plugin.Answer{Warnings: response.Warnings, Annotations: response.AuditAnnotations}
	if !response.Allowed {
		answer.Denied = response.Result
	}
	return answer
}

// unrecorded is a metrics.Recorder.
type unrecorded struct{}

func (unrecorded) RecordEvaluation(metrics.Decision, api.LevelVersion, metrics.Mode, api.Attributes) {
}
func (unrecorded) RecordExemption(api.Attributes)   {}
func (unrecorded) RecordError(bool, api.Attributes) {}

// K8 PodSecurity denies, warns and annotates as kube-apiserver's does, word for word. Where
// that lists the pods of a namespace, it says that it did not.
func TestK8PodSecurity(t *testing.T) {
	n, seed := pairs, uint64(time.Now().UnixNano())
	if s := os.Getenv("CONFORMANCE_N"); s != "" {
		n = must(strconv.Atoi(s))
	}
	if s := os.Getenv("CONFORMANCE_SEED"); s != "" {
		seed = must(strconv.ParseUint(s, 10, 64))
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	t.Logf("CONFORMANCE_SEED=%d", seed)
	d := sample.NewDice(seed, 1)
	came := map[string]int{}
	for i := range n {
		q := randomRequest(d)
		ours, theirs := q.ours(t), q.theirs(t)
		if len(theirs.Warnings) == 1 && strings.HasPrefix(theirs.Warnings[0], "failed to list pods") {
			if len(ours.Warnings) == 1 && strings.Contains(ours.Warnings[0], "were not checked") {
				theirs.Warnings = ours.Warnings
			}
			came["unchecked"]++
		}
		if diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("pair %d (-theirs +ours):\n%s\n%s", i, diff, q.review(t))
		}
		if theirs.Denied != nil {
			came[fmt.Sprint("denied ", theirs.Denied.Code)]++
		}
		for key := range theirs.Annotations {
			came[key]++
		}
		came["warned"] += min(1, len(theirs.Warnings))
	}
	t.Log(came)
	for _, what := range []string{"denied 403", "denied 422", "denied 500", "warned", "unchecked", "enforce-policy", "audit-violations", "exempt", "error"} {
		if came[what] < n/1000 {
			t.Errorf("%s came up %d times in %d", what, came[what], n)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
