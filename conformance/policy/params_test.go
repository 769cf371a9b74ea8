// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// paramKinds are those of the policies: one that the API server has a Go type for, a custom
// one in namespaces and one in none.
var paramKinds = []admissionregistrationv1.ParamKind{
	{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "example.com/v1", Kind: "Quota"}, {APIVersion: "example.com/v1", Kind: "Limits"},
}

var customResources = []manifest.CustomResource{
	{Origin: manifest.Origin{Object: "CustomResourceDefinition/Quota"}, Group: "example.com", Kind: "Quota", Plural: "quotas", Namespaced: true, Versions: []manifest.CustomVersion{{Name: "v1"}}},
	{Origin: manifest.Origin{Object: "CustomResourceDefinition/Limits"}, Group: "example.com", Kind: "Limits", Plural: "limits", Versions: []manifest.CustomVersion{{Name: "v1"}}},
}

// param is an object of one of the kinds.
func (g *policySource) param(kind admissionregistrationv1.ParamKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "uid": name, "creationTimestamp": "2026-01-02T03:04:05Z"}}}
	u.SetAPIVersion(kind.APIVersion)
	u.SetKind(kind.Kind)
	if kind.Kind != "Limits" {
		u.SetNamespace(namespace)
	}
	if g.some(60) {
		u.SetLabels(map[string]string{"tier": g.one("a", "gold")})
	}
	data := map[string]any{"name": g.one("web", "api"), "n": fmt.Sprint(g.IntN(9))}
	if kind.Kind != "ConfigMap" {
		data["max"], data["list"] = int64(g.IntN(4)), []any{"web", int64(1), map[string]any{"a": 1.5}}
	}
	if g.some(80) {
		u.Object["data"] = data
	}
	return u
}

// params are objects of all kinds.
func (g *policySource) params() (objects []*unstructured.Unstructured) {
	for _, kind := range paramKinds {
		for _, namespace := range []string{"bank", "shop"} {
			for _, name := range []string{"a", "b", "c"} {
				if (kind.Kind != "Limits" || namespace == "bank") && g.some(60) {
					objects = append(objects, g.param(kind, namespace, name))
				}
			}
		}
	}
	return objects
}

// withParams gives the bindings of policies with a kind of params references, and returns the
// objects that there are.
func (g *policySource) withParams(policies []*validating.Policy, bindings []*validating.PolicyBinding) []*unstructured.Unstructured {
	objects := g.params()
	for _, p := range policies {
		for _, b := range bindings {
			if b.Spec.PolicyName == p.Name {
				b.Spec.ParamRef, b.Annotations = g.reference(p.Spec.ParamKind)
			}
		}
	}
	return objects
}

// reference is to params of a kind, with the annotation that says where they are; none, if
// there is no kind, and now and then.
func (g *policySource) reference(kind *admissionregistrationv1.ParamKind) (*admissionregistrationv1.ParamRef, map[string]string) {
	if kind == nil || g.some(15) {
		return nil, nil
	}
	ref := &admissionregistrationv1.ParamRef{ParameterNotFoundAction: pointer(admissionregistrationv1.ParameterNotFoundActionType(g.one("Deny", "Allow")))}
	if g.some(50) {
		ref.Name = g.one("a", "b", "c", "none")
	} else {
		ref.Selector = g.selector(70, "tier")
	}
	if kind.Kind != "Limits" && g.some(30) {
		ref.Namespace = g.one("shop", "bank", "nowhere")
	}
	return ref, map[string]string{manifest.ParamsAnnotation: g.one(manifest.ParamsInRegistry, manifest.ParamsInCluster)}
}

// paramOperands are expressions of no static type over params, and the conditions that look
// at them.
func paramOperands() []string {
	return []string{"params", "params.data", "params.metadata", "params.metadata.labels", "params.data.max", "params.data.list", "params.data.name"}
}

func paramConditions() []string {
	return []string{"params == null", "params != null", "has(params.data)", "params.data.name == object.metadata.name", "params.data.max > 1", "int(params.data.n) > 4",
		"params.kind == 'ConfigMap'", "params.apiVersion == 'v1'", "params.metadata.namespace == request.namespace", "params.metadata.?labels.?tier.orValue('') == 'a'",
		"params.data.list[1] == 1", "params.data.list.exists(x, x == 'web')", "has(params.metadata.uid)", "type(params.metadata.creationTimestamp) == string"}
}

func namespaceOperands() []string {
	return []string{"namespaceObject", "namespaceObject.metadata", "namespaceObject.metadata.labels", "namespaceObject.spec", "namespaceObject.status", "namespaceObject.spec.finalizers"}
}

func namespaceConditions() []string {
	return []string{"namespaceObject == null", "namespaceObject.metadata.name == request.namespace", "namespaceObject.metadata.labels.team == 'a'", "has(namespaceObject.metadata.labels.tier)",
		"has(namespaceObject.metadata.annotations)", "namespaceObject.metadata.annotations.contact == 'ada'", "namespaceObject.status.phase == 'Active'", "'kubernetes' in namespaceObject.spec.finalizers",
		"has(namespaceObject.status.conditions)", "size(namespaceObject.status.conditions) == 0", "namespaceObject.metadata.UID == 'u'", "has(namespaceObject.metadata.generateName)",
		"namespaceObject.metadata.generation > 0", "namespaceObject.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')", "has(dyn(namespaceObject).kind)",
		"has(dyn(namespaceObject.metadata).ownerReferences)", "namespaceObject.status.conditions.all(c, c.status == 'True')", "namespaceObject.metadata.?labels.?team.orValue('b') == 'b'"}
}

// see is what the expressions of a policy look at, besides the review, and conditions of it.
func (g *policySource) see(p *validating.Policy) (operands, conditions []string) {
	if g.some(40) {
		operands, conditions = namespaceOperands(), namespaceConditions()
	}
	if p.Spec.ParamKind != nil {
		operands, conditions = append(operands, paramOperands()...), append(conditions, paramConditions()...)
	}
	return operands, conditions
}

// over is a condition that may be one of those, or have one in it.
func (g *policySource) over(conditions, names []string, depth int) string {
	plain := g.condition(names, depth)
	if len(conditions) == 0 || g.some(40) {
		return plain
	}
	one := g.one(conditions...)
	return g.one(one, one, "!("+one+")", "("+one+" || "+plain+")", "("+one+" && "+plain+")")
}

// namespaces are what is stored of policyNamespaces.
func namespaces() []*corev1.Namespace {
	var list []*corev1.Namespace
	for _, name := range slices.Sorted(maps.Keys(policyNamespaces)) {
		all := maps.Clone(policyNamespaces[name])
		all[corev1.LabelMetadataName] = name
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Labels: all, CreationTimestamp: metav1.Unix(1767323045, 0)}}
		if name == "shop" {
			ns.Annotations, ns.Generation = map[string]string{"contact": "ada"}, 2
			ns.Spec.Finalizers, ns.Status.Phase = []corev1.FinalizerName{"kubernetes"}, corev1.NamespaceActive
			ns.Status.Conditions = []corev1.NamespaceCondition{{Type: "A", Status: "True", LastTransitionTime: metav1.Unix(1767323045, 0)}}
		}
		list = append(list, ns)
	}
	return list
}

// informed is what the API server knows of the params of a policy.
func informed(kind *admissionregistrationv1.ParamKind, objects []*unstructured.Unstructured) (informers.GenericInformer, meta.RESTScope) {
	if kind == nil {
		return nil, nil
	}
	l := &sortedLister{}
	for _, u := range objects {
		if u.GetAPIVersion() == kind.APIVersion && u.GetKind() == kind.Kind {
			l.objects = append(l.objects, u)
		}
	}
	if kind.Kind == "Limits" {
		return syncedInformer{l}, meta.RESTScopeRoot
	}
	return syncedInformer{l}, meta.RESTScopeNamespace
}

// syncedInformer is all that the API server's dispatcher asks of an informer.
type syncedInformer struct{ lister *sortedLister }

var _ informers.GenericInformer = syncedInformer{}

func (i syncedInformer) Informer() cache.SharedIndexInformer { return synced{} }
func (i syncedInformer) Lister() cache.GenericLister         { return i.lister }

type synced struct{ cache.SharedIndexInformer }

func (synced) HasSynced() bool { return true }

// sortedLister has objects as an informer has them, in an order of which the API server's
// is a random one.
type sortedLister struct {
	objects   []*unstructured.Unstructured
	namespace string
}

func (l *sortedLister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return &sortedLister{l.objects, namespace}
}

func (l *sortedLister) Get(name string) (runtime.Object, error) {
	for _, u := range l.objects {
		if u.GetNamespace() == l.namespace && u.GetName() == name {
			return asInformed(u), nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (l *sortedLister) List(selector labels.Selector) (list []runtime.Object, _ error) {
	for _, u := range l.objects {
		if u.GetNamespace() == l.namespace && selector.Matches(labels.Set(u.GetLabels())) {
			list = append(list, asInformed(u))
		}
	}
	return list, nil
}

// asInformed is the object as its informer has it: typed, without its kind, where there is a
// type.
func asInformed(u *unstructured.Unstructured) runtime.Object {
	if u.GetKind() != "ConfigMap" {
		return u.DeepCopy()
	}
	typed := &corev1.ConfigMap{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		panic(err)
	}
	typed.TypeMeta = metav1.TypeMeta{}
	return typed
}

// stored are the objects by resource, as a cluster's watches bring them.
func stored(objects []*unstructured.Unstructured) map[schema.GroupVersionResource]hook.Objects {
	lists := map[schema.GroupVersionResource]policy.ParamList{}
	resources := map[string]schema.GroupVersionResource{"ConfigMap": corev1.SchemeGroupVersion.WithResource("configmaps")}
	for _, c := range customResources {
		resources[c.Kind] = schema.GroupVersionResource{Group: c.Group, Version: c.Versions[0].Name, Resource: c.Plural}
	}
	for _, gvr := range resources {
		lists[gvr] = nil
	}
	for _, u := range objects {
		lists[resources[u.GetKind()]] = append(lists[resources[u.GetKind()]], asStored(u, u))
	}
	for _, ns := range namespaces() {
		ns.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}
		lists[policy.Namespaces()] = append(lists[policy.Namespaces()], asStored(ns, ns))
	}
	all := map[schema.GroupVersionResource]hook.Objects{}
	for gvr, list := range lists {
		slices.SortFunc(list, func(a, b *hook.Stored) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		all[gvr] = list
	}
	return all
}

func asStored(o any, m metav1.Object) *hook.Stored {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return &hook.Stored{Namespace: m.GetNamespace(), Name: m.GetName(), Labels: m.GetLabels(), JSON: text}
}

// inRegistry are the objects as they stand in a source.
func inRegistry(objects []*unstructured.Unstructured) (list []manifest.Param) {
	for _, u := range objects {
		s := asStored(u, u)
		list = append(list, manifest.Param{
			Origin:    manifest.Origin{Object: strings.Join([]string{u.GetKind(), s.Namespace, s.Name}, "/")},
			TypeMeta:  metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()},
			Namespace: s.Namespace, Name: s.Name, Labels: s.Labels, JSON: s.JSON,
		})
	}
	return list
}

// clusterWithAPI reads a Cluster whose API nobody contacts.
func clusterWithAPI(t *testing.T) manifest.Input {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cluster.yaml": "{apiVersion: dispatcher.dev/v1alpha1, kind: Cluster, metadata: {name: east}, spec: {authentication: {anonymous: true}, kubeconfigFile: api.kubeconfig}}",
		"api.kubeconfig": "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], " +
			"clusters: [{name: c, cluster: {server: 'https://api.example.com'}}], users: [{name: u, user: {tokenFile: token}}]}",
		"token": "t",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := (&manifest.Reader{Sources: manifest.Directories(dir)}).Read(t.Context())
	if len(in.Problems) > 0 || len(in.Objects.Clusters) != 1 {
		t.Fatal(in.Problems)
	}
	return in
}

// listedNamespaces are the labels of policyNamespaces.
type listedNamespaces struct{}

func (listedNamespaces) NamespaceLabels(name string) (map[string]string, error) {
	for _, ns := range namespaces() {
		if ns.Name == name {
			return ns.Labels, nil
		}
	}
	return nil, fmt.Errorf("there is no %s", name)
}
