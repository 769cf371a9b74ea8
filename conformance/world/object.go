// SPDX-License-Identifier: Apache-2.0

package world

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
)

// builtIn are all built-in kinds. Any other is a custom resource.
var builtIn = newScheme()

var objects = interfaces{admission.NewObjectInterfacesFromScheme(builtIn)}

// interfaces are those of the scheme, and of the kinds that have several forms:
// their objects have no Go type, and are converted by saying in which form they are.
type interfaces struct{ admission.ObjectInterfaces }

// forms knows which resources are the same objects.
var forms = newForms()

func newForms() runtime.EquivalentResourceRegistry {
	resources := map[schema.GroupResource]string{}
	for _, c := range random.AllConverted() {
		for _, gv := range c.Forms {
			resources[gv.WithResource(c.Resource).GroupResource()] = c.Resource
		}
	}
	registry := runtime.NewEquivalentResourceRegistryWithIdentity(func(r schema.GroupResource) string { return resources[r] })
	for _, c := range random.AllConverted() {
		for _, gv := range c.Forms {
			registry.RegisterKindFor(gv.WithResource(c.Resource), "", gv.WithKind(c.Kind))
			for _, sub := range c.Subresources {
				kind := gv.WithKind(c.Kind)
				if sub == "scale" {
					kind = scaleKind
				}
				registry.RegisterKindFor(gv.WithResource(c.Resource), sub, kind)
			}
		}
	}
	return registry
}

var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// converted reports whether objects of the kind are served in several forms.
func converted(gvk schema.GroupVersionKind) bool {
	for _, c := range random.AllConverted() {
		if c.Kind == gvk.Kind && slices.Contains(c.Forms, gvk.GroupVersion()) {
			return true
		}
	}
	return false
}

func (interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return forms }

func (i interfaces) GetObjectCreater() runtime.ObjectCreater {
	return creator{i.ObjectInterfaces.GetObjectCreater()}
}

func (i interfaces) GetObjectConvertor() runtime.ObjectConvertor {
	return convertor{i.ObjectInterfaces.GetObjectConvertor()}
}

type creator struct{ runtime.ObjectCreater }

func (c creator) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if !converted(gvk) {
		return c.ObjectCreater.New(gvk)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	return o, nil
}

type convertor struct{ runtime.ObjectConvertor }

func (c convertor) Convert(in, out, context any) error {
	from, ok := in.(*unstructured.Unstructured)
	to, same := out.(*unstructured.Unstructured)
	if !ok || !same || !converted(to.GroupVersionKind()) {
		return c.ObjectConvertor.Convert(in, out, context)
	}
	gvk := to.GroupVersionKind()
	to.Object = runtime.DeepCopyJSON(from.Object)
	to.SetGroupVersionKind(gvk)
	to.Object[random.FormField] = gvk.GroupVersion().String()
	return nil
}

// newScheme returns the scheme of clients with the one default of the API server's
// own that webhooks are matched by: the name in a Namespace's labels.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	s.AddTypeDefaultingFunc(&corev1.Namespace{}, func(o any) {
		n := o.(*corev1.Namespace)
		if n.Name == "" {
			return
		}
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[corev1.LabelMetadataName] = n.Name
	})
	return s
}

// played is the admission as the plugins take it.
func played(a *random.Admission) (caller.Admission, error) {
	object, err := decoded(a, a.Object)
	if err != nil {
		return caller.Admission{}, err
	}
	old, err := decoded(a, a.OldObject)
	if err != nil {
		return caller.Admission{}, err
	}
	return caller.Admission{
		Operation:   a.Operation,
		Kind:        a.Kind,
		Resource:    a.Resource,
		Subresource: a.Subresource,
		Namespace:   a.Namespace,
		Name:        a.Name,
		Object:      object,
		OldObject:   old,
		Options:     options(a),
		DryRun:      a.DryRun,
		User:        &a.User,
	}, nil
}

// decoded returns an object of its own Go type, or as a custom resource.
func decoded(a *random.Admission, text json.RawMessage) (runtime.Object, error) {
	if text == nil {
		return nil, nil
	}
	var out runtime.Object = &unstructured.Unstructured{}
	if builtIn.Recognizes(a.Kind) && !converted(a.Kind) {
		typed, err := builtIn.New(a.Kind)
		if err != nil {
			return nil, err
		}
		out = typed
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	builtIn.Default(out)
	out.GetObjectKind().SetGroupVersionKind(a.Kind)
	return out, nil
}

func options(a *random.Admission) runtime.Object {
	meta := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: kind} }
	var dryRun []string
	if a.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	switch a.Operation {
	case admission.Create:
		return &metav1.CreateOptions{TypeMeta: meta("CreateOptions"), DryRun: dryRun, FieldManager: "kubectl"}
	case admission.Update:
		return &metav1.UpdateOptions{TypeMeta: meta("UpdateOptions"), DryRun: dryRun}
	case admission.Delete:
		return &metav1.DeleteOptions{TypeMeta: meta("DeleteOptions"), DryRun: dryRun}
	}
	return nil
}
