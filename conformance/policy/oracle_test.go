// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/warning"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// policyOracle is the API server's own dispatcher of policies.
type policyOracle struct {
	dispatcher generic.Dispatcher[validating.PolicyHook]
	objects    admission.ObjectInterfaces
}

func newPolicyOracle(t *testing.T) *policyOracle {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, ns := range namespaces() {
		if err := indexer.Add(ns); err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	matcher := generic.NewPolicyMatcher(matching.NewMatcher(listersv1.NewNamespaceLister(indexer), nil))
	return &policyOracle{dispatcher: validating.NewDispatcher(inCluster{}, matcher), objects: admission.NewObjectInterfacesFromScheme(scheme)}
}

// hooks compiles policies as the plugin does (compilePolicy in
// k8s.io/apiserver/pkg/admission/plugin/policy/validating/plugin.go, which is not
// exported), in the order of names, where the plugin has none.
func (o *policyOracle) hooks(policies []*validating.Policy, bindings []*validating.PolicyBinding, params ...*unstructured.Unstructured) (hooks []validating.PolicyHook) {
	for _, p := range policies {
		hook := validating.PolicyHook{Policy: p, Evaluator: compileAsThePlugin(p)}
		for _, b := range bindings {
			if b.Spec.PolicyName == p.Name {
				hook.Bindings = append(hook.Bindings, b)
			}
		}
		hook.ParamInformer, hook.ParamScope = informed(p.Spec.ParamKind, params)
		hooks = append(hooks, hook)
	}
	return hooks
}

var baseEnvironment = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

func compileAsThePlugin(p *validating.Policy) validating.Validator {
	compiler, err := plugincel.NewCompositedCompiler(baseEnvironment())
	if err != nil {
		panic(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	for _, v := range p.Spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.StoredExpressions)
	}
	all := func(n int, of func(int) plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
		list := make([]plugincel.ExpressionAccessor, n)
		for i := range list {
			list[i] = of(i)
		}
		return compiler.CompileCondition(list, options, environment.StoredExpressions)
	}
	var matcher matchconditions.Matcher
	if n := len(p.Spec.MatchConditions); n > 0 {
		matcher = matchconditions.NewMatcher(all(n, func(i int) plugincel.ExpressionAccessor {
			return (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i])
		}, options), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
	validations := p.Spec.Validations
	return validating.NewValidator(
		all(len(validations), func(i int) plugincel.ExpressionAccessor {
			v := &validations[i]
			return &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		}, options),
		matcher,
		all(len(p.Spec.AuditAnnotations), func(i int) plugincel.ExpressionAccessor {
			a := &p.Spec.AuditAnnotations[i]
			return &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}
		}, options),
		all(len(validations), func(i int) plugincel.ExpressionAccessor {
			if validations[i].MessageExpression == "" {
				return nil
			}
			return &validating.MessageExpressionCondition{MessageExpression: validations[i].MessageExpression}
		}, plugincel.OptionalVariableDeclarations{HasParams: options.HasParams}),
		p.Spec.FailurePolicy, nil)
}

// noted keeps audit annotations and warnings.
type noted struct {
	admission.Attributes
	notes    map[string]string
	warnings []string
}

func (n *noted) AddAnnotation(key, value string) error {
	n.notes[key] = value
	return nil
}

// AddWarning keeps the warning in one line, as ours is: the API server drops others.
func (n *noted) AddWarning(_, text string) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = strings.Join(strings.Fields(text), " ")
	}
	n.warnings = append(n.warnings, text)
}

func (o *policyOracle) decide(t *testing.T, hooks []validating.PolicyHook, a *policyAdmission) decided {
	t.Helper()
	object, old := runtime.Object(nil), runtime.Object(nil)
	if a.New != nil {
		object = a.New.DeepCopyObject()
	}
	if a.Old != nil {
		old = a.Old.DeepCopyObject()
	}
	n := &noted{notes: map[string]string{}, Attributes: admission.NewAttributesRecord(object, old, a.Kind,
		a.Namespace, a.Name, a.Resource, a.Subresource, a.Operation, nil, false, a.user())}
	err := o.dispatcher.Dispatch(warning.WithWarningRecorder(t.Context(), n), n, o.objects, hooks)
	d := decided{Allowed: err == nil, Warnings: told(n.warnings), Annotations: map[string]string{}}
	for key, value := range n.notes {
		if key == "validation.policy.admission.k8s.io/validation_failure" {
			key = "dispatcher.dev.validation-failures"
		}
		d.Annotations[strings.ReplaceAll(key, "/", ".")] = value
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		d.Code, d.Reason = status.ErrStatus.Code, string(status.ErrStatus.Reason)
		_, d.Message, _ = strings.Cut(status.ErrStatus.Message, " is forbidden: ")
	} else if err != nil {
		t.Fatal(err)
	}
	return d
}

// told is what a client of the API server is told of warnings.
func told(warnings []string) (texts []string) {
	answer := httptest.NewRecorder()
	filters.WithWarningRecorder(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for _, text := range warnings {
			warning.AddWarning(r.Context(), "", text)
		}
	})).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", nil))
	headers, _ := utilnet.ParseWarningHeaders(answer.Header()["Warning"])
	for _, h := range headers {
		texts = append(texts, h.Text)
	}
	return texts
}
