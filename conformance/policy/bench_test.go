// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
	"github.com/admission-dispatcher/dispatcher/policy"
)

// benchPolicy has five validations of a usual kind, which the pod holds. Two policies
// differ in one of them, and declare the same variables.
func benchPolicy(n int) *validating.Policy {
	p := &validating.Policy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", n)}}
	p.Spec.FailurePolicy = pointer(admissionregistrationv1.Fail)
	p.Spec.Variables = []admissionregistrationv1.Variable{
		{Name: "containers", Expression: "object.spec.containers + object.spec.?initContainers.orValue([])"},
		{Name: "labels", Expression: "object.metadata.?labels.orValue({})"},
	}
	for _, v := range [][2]string{
		{"variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))", "'privileged: ' + variables.containers.map(c, c.name).join(', ')"},
		{"variables.containers.all(c, !c.image.endsWith(':latest'))", ""},
		{"!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false)", ""},
		{fmt.Sprintf("!('example.com/exempt-%d' in variables.labels)", n), "'exempt: ' + object.metadata.name"},
		{"request.userInfo.username != '' && size(variables.containers) < 50", ""},
	} {
		p.Spec.Validations = append(p.Spec.Validations, admissionregistrationv1.Validation{Expression: v[0], Message: "no", MessageExpression: v[1]})
	}
	return p
}

// BenchmarkPolicy is what policies with five validations each cost an admission of a pod
// of 6 KB, with all that is made for them of the review: ours make its JSON a value of
// CEL, where the API server's has the pod decoded already.
func BenchmarkPolicy(b *testing.B) {
	review := payload.PodCreate()
	for _, policies := range []int{1, 10} {
		b.Run(fmt.Sprintf("ours/%d", policies), func(b *testing.B) {
			compiler := policy.NewCompiler(celenv.NewCompiler())
			var bindings []*policy.Binding
			for n := range policies {
				compiled, errs := compiler.Compile(&benchPolicy(n).Spec, nil)
				if len(errs) > 0 {
					b.Fatal(errs)
				}
				bindings = append(bindings, policy.NewBinding(compiled, "p", "b", []admissionregistrationv1.ValidationAction{"Deny"}, nil))
			}
			body := codec.NewBody(review.Body, nil)
			defer body.Release()
			r := codec.AcquireReview()
			defer codec.ReleaseReview(r)
			if err := r.Decode(body); err != nil {
				b.Fatal(err)
			}
			defer spends(b)()
			for b.Loop() {
				v, a := hook.NewView(hook.Source{Review: r, Cluster: "east"}), answers{}
				deadline := time.Now().Add(10 * time.Second)
				for _, binding := range bindings {
					binding.Ask(b.Context(), hook.Question{View: v, Deadline: deadline}, hook.NewReceiver(&a, 0))
				}
				if v.Release(); a.allowed != policies {
					b.Fatal(a)
				}
			}
		})
	}
	b.Run("apiserver/1", func(b *testing.B) {
		p := benchPolicy(0)
		validator, pod := compileAsThePlugin(p), podOf(b, review.Body)
		gvk, gvr := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
		attributes := admission.NewAttributesRecord(pod, nil, gvk, pod.Namespace, pod.Name, gvr, "", admission.Create, nil, false, &user.DefaultInfo{Name: "ada"})
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace}}
		defer spends(b)()
		for b.Loop() {
			versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: gvk, VersionedObject: admission.NewLazyObject(pod)}
			result := validator.Validate(b.Context(), gvr, versioned, nil, namespace, celconfig.RuntimeCELCostBudget, nil)
			for _, d := range result.Decisions {
				if d.Action != validating.ActionAdmit {
					b.Fatal(d)
				}
			}
		}
	})
}

// spends reports what the process spends until the end, which others on the machine
// hardly change.
func spends(b *testing.B) (end func()) {
	b.ReportAllocs()
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin := spent()
	return func() { b.ReportMetric(float64(spent()-begin)/float64(b.N), "cpu-ns/op") }
}

// answers counts them.
type answers struct {
	allowed int
	failed  error
}

func (a *answers) Answered(_ uint64, resp codec.Response, err error) {
	if a.failed = err; resp.Allowed {
		a.allowed++
	}
}

func podOf(b *testing.B, review []byte) *corev1.Pod {
	b.Helper()
	var text struct {
		Request struct {
			Object runtime.RawExtension `json:"object"`
		} `json:"request"`
	}
	var pod corev1.Pod
	if err := json.Unmarshal(review, &text); err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(text.Request.Object.Raw, &pod); err != nil {
		b.Fatal(err)
	}
	return &pod
}
