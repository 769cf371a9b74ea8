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
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/pod-security-admission/admission"
	admissionapi "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// pairs is how many random requests are compared, unless CONFORMANCE_N says another number.
const pairs = 20_000

// request is one request with what is known of its cluster.
type request struct {
	hook.Caller // for what is not asked

	operation                          admissionv1.Operation
	resource                           schema.GroupVersionResource
	kind                               string
	subresource, namespace, name, user string
	object, old                        runtime.Object
	labels                             map[string]string // nil: the namespace is not known
	minor                              int               // of Kubernetes; 0: not known
	configuration                      podsecurity.Configuration
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

func randomRequest(d dice) *request {
	q := &request{
		operation: pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Update), namespace: pick(d, "shop", "shop", "shop", "exempt"),
		name: pick(d, "web", "web", ""), user: pick(d, "ann", "ann", "ann", "robot"), labels: d.labels(), minor: pick(d, 0, 22, 30, 33, 34, 36, 37, 99),
	}
	if d.one(20) {
		q.labels = nil
	}
	q.configuration.Exemptions = podsecurity.Exemptions{Usernames: []string{"robot"}, Namespaces: []string{"exempt"}, RuntimeClasses: []string{"gvisor"}}
	if d.one(2) {
		q.configuration.Defaults = podsecurity.Defaults{
			Enforce: pick(d, "", "baseline", "restricted"), EnforceVersion: pick(d, "", "latest", "v1.25"),
			Audit: pick(d, "", "baseline", "restricted"), Warn: pick(d, "", "baseline", "restricted"), WarnVersion: pick(d, "", "v1.19"),
		}
	}
	switch d.IntN(10) {
	case 0, 1:
		q.ofNamespace(d)
	case 2, 3, 4:
		q.ofWorkload(d)
	default:
		q.resource, q.kind = corev1.SchemeGroupVersion.WithResource("pods"), "Pod"
		q.subresource = pick(d, "", "", "", "", "ephemeralcontainers", "resize", "status", "exec", "binding", "later")
		pod := &corev1.Pod{ObjectMeta: d.metadata(), Spec: d.spec()}
		q.object = pod
		if q.operation == admissionv1.Update {
			old := pod.DeepCopy()
			if d.one(2) {
				old.Spec.Containers[0].Image = pick(d, "a", "b", "c")
			}
			if d.one(8) {
				old.Spec.EphemeralContainers, old.Spec.InitContainers = nil, nil
			}
			q.old = old
		}
	}
	return q
}

func (q *request) ofNamespace(d dice) {
	q.resource, q.kind = corev1.SchemeGroupVersion.WithResource("namespaces"), "Namespace"
	q.name, q.subresource = q.namespace, pick(d, "", "", "", "status", "finalize")
	q.object = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.name, Labels: d.labels()}}
	if q.operation == admissionv1.Update {
		old := d.labels()
		if d.one(4) {
			old = maps.Clone(q.object.(*corev1.Namespace).Labels)
		}
		q.old = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.name, Labels: old}}
	}
}

func (q *request) ofWorkload(d dice) {
	template := corev1.PodTemplateSpec{ObjectMeta: d.metadata(), Spec: d.spec()}
	q.subresource = pick(d, "", "", "", "", "", "scale")
	set := func(gv schema.GroupVersion, resource, kind string, object runtime.Object) {
		q.resource, q.kind, q.object = gv.WithResource(resource), kind, object
	}
	switch d.IntN(9) {
	case 0:
		set(corev1.SchemeGroupVersion, "podtemplates", "PodTemplate", &corev1.PodTemplate{Template: template})
	case 1:
		rc := &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &template}}
		if d.one(4) {
			rc.Spec.Template = nil
		}
		set(corev1.SchemeGroupVersion, "replicationcontrollers", "ReplicationController", rc)
	case 2:
		set(appsv1.SchemeGroupVersion, "replicasets", "ReplicaSet", &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: template}})
	case 3:
		set(appsv1.SchemeGroupVersion, "deployments", "Deployment", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: template}})
	case 4:
		set(appsv1.SchemeGroupVersion, "statefulsets", "StatefulSet", &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: template}})
	case 5:
		set(appsv1.SchemeGroupVersion, "daemonsets", "DaemonSet", &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: template}})
	case 6:
		set(batchv1.SchemeGroupVersion, "jobs", "Job", &batchv1.Job{Spec: batchv1.JobSpec{Template: template}})
	case 7:
		set(batchv1.SchemeGroupVersion, "cronjobs", "CronJob", &batchv1.CronJob{Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}})
	case 8:
		q.resource, q.kind, q.object = corev1.SchemeGroupVersion.WithResource("configmaps"), "ConfigMap", &corev1.ConfigMap{}
	}
	if q.operation == admissionv1.Update {
		q.old = q.object
	}
}

// review is the request as kube-apiserver sends it.
func (q *request) review(t *testing.T) []byte {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		UID: "u-1", Kind: metav1.GroupVersionKind{Group: q.resource.Group, Version: q.resource.Version, Kind: q.kind}, Resource: metav1.GroupVersionResource(q.resource),
		SubResource: q.subresource, Name: q.name, Namespace: q.namespace, Operation: q.operation,
		Object: runtime.RawExtension{Object: q.object}, OldObject: runtime.RawExtension{Object: q.old},
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
	gr := q.resource.GroupResource()
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
		Name: q.name, Namespace: q.namespace, Kind: q.resource.GroupVersion().WithKind(q.kind), Resource: q.resource, Subresource: q.subresource,
		Operation: q.operation, Object: q.object, OldObject: q.old, Username: q.user,
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
	d := dice{rand.New(rand.NewPCG(seed, 1))}
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
