// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/applyconfigurations"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// mutationOracle is the API server's own dispatcher of MutatingAdmissionPolicies.
type mutationOracle struct {
	dispatcher generic.Dispatcher[mutating.PolicyHook]
	objects    admission.ObjectInterfaces
}

// builtIn has the types of the built-in kinds, where the plugin reads them from its server.
type builtIn struct{ managedfields.TypeConverter }

func (b builtIn) GetTypeConverter(schema.GroupVersionKind) managedfields.TypeConverter {
	return b.TypeConverter
}

func (builtIn) Run(context.Context) {}

func newMutationOracle(t *testing.T) *mutationOracle {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, labels := range policyNamespaces {
		all := maps.Clone(labels)
		all[corev1.LabelMetadataName] = name
		if err := indexer.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}); err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := scheme.AddConversionFunc((*corev1.Pod)(nil), (*corev1.Pod)(nil), func(in, out any, _ conversion.Scope) error {
		in.(*corev1.Pod).DeepCopyInto(out.(*corev1.Pod))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return &mutationOracle{
		dispatcher: mutating.NewDispatcher(inCluster{}, matching.NewMatcher(listersv1.NewNamespaceLister(indexer), nil), builtIn{applyconfigurations.NewTypeConverter(scheme)}),
		objects:    admission.NewObjectInterfacesFromScheme(scheme),
	}
}

// hooks compiles policies as the plugin does (compilePolicy in
// k8s.io/apiserver/pkg/admission/plugin/policy/mutating/compilation.go, which is not
// exported), in the order of names, where the plugin has none.
func (o *mutationOracle) hooks(policies []*mutating.Policy, bindings []*mutating.PolicyBinding, params ...*unstructured.Unstructured) (hooks []mutating.PolicyHook) {
	for _, p := range policies {
		hook := mutating.PolicyHook{Policy: p, Evaluator: compileMutations(p)}
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

func compileMutations(p *mutating.Policy) mutating.PolicyEvaluator {
	compiler, err := plugincel.NewCompositedCompiler(baseEnvironment())
	if err != nil {
		panic(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	for _, v := range p.Spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.StoredExpressions)
	}
	made := mutating.PolicyEvaluator{CompositedCompiler: compiler}
	if n := len(p.Spec.MatchConditions); n > 0 {
		list := make([]plugincel.ExpressionAccessor, n)
		for i := range list {
			list[i] = (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i])
		}
		made.Matcher = matchconditions.NewMatcher(compiler.CompileCondition(list, options, environment.StoredExpressions), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
	options.HasPatchTypes = true
	for _, m := range p.Spec.Mutations {
		switch m.PatchType {
		case admissionregistrationv1.PatchTypeJSONPatch:
			made.Mutators = append(made.Mutators, patch.NewJSONPatcher(
				compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, options, environment.StoredExpressions)))
		case admissionregistrationv1.PatchTypeApplyConfiguration:
			made.Mutators = append(made.Mutators, patch.NewApplyConfigurationPatcher(
				compiler.CompileMutatingEvaluator(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, options, environment.StoredExpressions)))
		}
	}
	return made
}

// mutate returns what the policies came to, and the pod that they have made; twice, if
// they have changed it, as the API server reinvokes them.
func (o *mutationOracle) mutate(t *testing.T, hooks []mutating.PolicyHook, a *policyAdmission) (decided, *corev1.Pod) {
	t.Helper()
	object, old := runtime.Object(nil), runtime.Object(nil)
	if a.New != nil {
		object = a.New.DeepCopyObject()
	}
	if a.Old != nil {
		old = a.Old.DeepCopyObject()
	}
	attributes := admission.NewAttributesRecord(object, old, a.Kind,
		a.Namespace, a.Name, a.Resource, a.Subresource, a.Operation, nil, false, a.user())
	err := o.dispatcher.Dispatch(t.Context(), attributes, o.objects, hooks)
	if again := attributes.GetReinvocationContext(); err == nil && again.ShouldReinvoke() {
		again.SetIsReinvoke()
		err = o.dispatcher.Dispatch(t.Context(), attributes, o.objects, hooks)
	}
	d := decided{Allowed: err == nil}
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		d.Code, d.Reason = status.ErrStatus.Code, string(status.ErrStatus.Reason)
		d.Message = status.ErrStatus.Message
		if d.Code == 403 {
			_, d.Message, _ = strings.Cut(": "+d.Message, ": ")
		}
	} else if err != nil {
		t.Fatal(err)
	}
	if a.New == nil {
		return d, nil
	}
	return d, attributes.GetObject().(*corev1.Pod)
}
