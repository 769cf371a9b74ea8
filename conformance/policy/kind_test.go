// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Every kind of Kubernetes that is stored can be a paramKind, with the resource and the
// scope that client-go has for it (H12).
func TestKindsOfParams(t *testing.T) {
	kinds := 0
	for gvk, of := range storedKinds(t) {
		if gvk.Group == "extensions" || gvk.Kind == "ComponentStatus" {
			continue // which no API server has any more, and which none stores
		}
		if problems := problemsOf(gvk, ""); !strings.Contains(problems, fmt.Sprintf("%q: are objects of the cluster that nobody can read", of.resource.GroupResource())) {
			t.Errorf("%v is %v: %s", gvk, of.resource, problems)
		}
		if problems := problemsOf(gvk, "shop"); strings.Contains(problems, "must not be provided for a cluster-scoped") == of.namespaced {
			t.Errorf("%v: namespaced %t: %s", gvk, of.namespaced, problems)
		}
		kinds++
	}
	if kinds < 80 {
		t.Errorf("there are only %d kinds", kinds)
	}
}

type storedKind struct {
	resource   schema.GroupVersionResource
	namespaced bool
}

// storedKinds are the kinds of which client-go's clients create objects.
func storedKinds(t *testing.T) map[schema.GroupVersionKind]storedKind {
	t.Helper()
	all := map[schema.GroupVersionKind]storedKind{}
	clients := reflect.ValueOf(kubernetes.NewForConfigOrDie(&rest.Config{}))
	for i := range clients.NumMethod() {
		if clients.Method(i).Type().NumIn() != 0 {
			continue
		}
		group := clients.Method(i).Call(nil)[0]
		client, ok := group.Interface().(interface{ RESTClient() rest.Interface })
		if !ok {
			continue
		}
		gv := client.RESTClient().APIVersion()
		for j := range group.NumMethod() {
			of, name := group.Method(j).Type(), group.Type().Method(j).Name
			if name == "RESTClient" || of.NumOut() != 1 || of.Out(0).Kind() != reflect.Interface {
				continue
			}
			get, ok := of.Out(0).MethodByName("Watch")
			create, creates := of.Out(0).MethodByName("Create")
			if !ok || !creates || get.Type.NumIn() == 0 {
				continue // what is asked, and not stored
			}
			kind := create.Type.In(1).Elem().Name()
			all[gv.WithKind(kind)] = storedKind{gv.WithResource(strings.ToLower(name)), of.NumIn() == 1}
		}
	}
	return all
}

// problemsOf is what is wrong with a policy with such params that are the cluster's.
func problemsOf(gvk schema.GroupVersionKind, namespace string) string {
	p := manifest.Policy{Origin: manifest.Origin{Object: "p"}}
	p.Name = "p"
	p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
	p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{MatchPolicy: pointer(admissionregistrationv1.Exact), ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{"*"}, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: pointer(admissionregistrationv1.AllScopes),
		}},
	}}}
	p.Spec.MatchConstraints.NamespaceSelector, p.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
	p.Spec.FailurePolicy = pointer(admissionregistrationv1.Fail)
	p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "true"}}
	b := manifest.PolicyBinding{Origin: manifest.Origin{Object: "b"}}
	b.Name, b.Annotations = "b", map[string]string{manifest.ParamsAnnotation: manifest.ParamsInCluster}
	b.Spec.PolicyName, b.Spec.ValidationActions = "p", []admissionregistrationv1.ValidationAction{"Deny"}
	b.Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: "a", Namespace: namespace, ParameterNotFoundAction: pointer(admissionregistrationv1.DenyAction)}
	cluster := manifest.Cluster{}
	cluster.Name, cluster.Spec.Authentication.Anonymous = "east", true
	_, problems, _ := compile.NewCompiler(compile.Options{}).Compile(manifest.Input{Objects: &manifest.Objects{
		Policies: []manifest.Policy{p}, PolicyBindings: []manifest.PolicyBinding{b}, Clusters: []manifest.Cluster{cluster},
	}}, nil, nil)
	return fmt.Sprint(problems)
}
