// SPDX-License-Identifier: Apache-2.0

// Package adopt makes, of the webhook configurations that a workload cluster has, what to
// register with the dispatcher in their place, and the patches by which their owner leaves
// their calls to the dispatcher and takes them back. It is pure: it contacts nobody, and
// changes nothing.
package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/lint"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Plan is how one configuration is adopted.
type Plan struct {
	Kind, Name string // of the original
	// Registration is the WebhookConfiguration and the WebhookBinding, as YAML.
	Registration []byte
	// Neutralise and TakeBack are strategic merge patches of the original, as JSON.
	Neutralise, TakeBack []byte
	Services             []string // namespace/name of the cluster's Services that it names
}

// Skipped is a configuration that is not adopted.
type Skipped struct {
	Kind, Name string
	Reason     string
	Instead    string // what to do; may be empty
}

// Result is what comes of the configurations of a cluster.
type Result struct {
	Plans   []Plan
	Skipped []Skipped
}

// maxConditions is kube-apiserver's limit of matchConditions of one webhook.
const maxConditions = 64

// New returns how the configurations of the named cluster are adopted, in the order of
// their names. Its input is not changed.
func New(cluster string, configurations []unstructured.Unstructured) (Result, error) {
	var r Result
	list := slices.Clone(configurations)
	slices.SortFunc(list, func(a, b unstructured.Unstructured) int {
		return strings.Compare(a.GetName()+"/"+a.GetKind(), b.GetName()+"/"+b.GetKind())
	})
	for i := range list {
		o := &list[i]
		both := slices.ContainsFunc(list, func(p unstructured.Unstructured) bool {
			return p.GetName() == o.GetName() && p.GetKind() != o.GetKind()
		})
		p, skipped, err := plan(cluster, o, both)
		switch {
		case err != nil:
			return Result{}, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		case skipped != nil:
			r.Skipped = append(r.Skipped, *skipped)
		default:
			r.Plans = append(r.Plans, *p)
		}
	}
	return r, nil
}

// plan returns how one configuration is adopted, or why not. both: there is another of its
// name of the other kind.
func plan(cluster string, o *unstructured.Unstructured, both bool) (*Plan, *Skipped, error) {
	var c admissionregistrationv1.MutatingWebhookConfiguration // which has all fields of the other kind
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &c, true); err != nil {
		return nil, nil, fmt.Errorf("has what this version does not know: %w", err)
	}
	skip := func(reason, instead string) (*Plan, *Skipped, error) {
		return nil, &Skipped{o.GetKind(), o.GetName(), reason, instead}, nil
	}
	if reason := notAdopted(&c); reason != "" {
		return skip(reason, "")
	}
	if by := ControllerOf(&c); by != nil {
		return skip(by.Name+" "+by.Reason, by.Instead)
	}
	p := &Plan{Kind: o.GetKind(), Name: o.GetName()}
	var err error
	if p.Neutralise, p.TakeBack, err = patches(c.Webhooks); err != nil {
		return nil, nil, err
	}
	for i := range c.Webhooks {
		if s := c.Webhooks[i].ClientConfig.Service; s != nil && !slices.Contains(p.Services, s.Namespace+"/"+s.Name) {
			p.Services = append(p.Services, s.Namespace+"/"+s.Name)
		}
	}
	p.Registration, err = registration(cluster, o.GetKind(), &c, both)
	return p, nil, err
}

// notAdopted is what of the configuration itself speaks against it.
func notAdopted(c *admissionregistrationv1.MutatingWebhookConfiguration) string {
	switch {
	case len(c.Webhooks) == 0:
		return "has no webhook"
	case slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return strings.HasSuffix(w.Name, lint.OwnSuffix)
	}):
		return "is the dispatcher's own registration"
	case c.Labels[manifest.MirrorLabel] == "true":
		return "is mirrored: it has the label " + manifest.MirrorLabel
	case slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return isLeft(&w) }):
		return "is left to the dispatcher already: it has the matchCondition " + lint.DispatchedCondition
	case slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return len(w.MatchConditions) >= maxConditions
	}):
		return fmt.Sprintf("has a webhook with %d matchConditions: there is no room for the one that leaves it to the dispatcher", maxConditions)
	}
	return ""
}

func isLeft(w *admissionregistrationv1.MutatingWebhook) bool {
	return slices.ContainsFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == lint.DispatchedCondition })
}

// patches returns the strategic merge patches. They name webhooks and conditions, so they
// find these whatever order they have by then; webhooks take the order that they have here.
func patches(webhooks []admissionregistrationv1.MutatingWebhook) (neutralise, takeBack []byte, err error) {
	type object = map[string]any
	of := func(condition object) ([]byte, error) {
		list := make([]object, len(webhooks))
		for i := range webhooks {
			list[i] = object{"name": webhooks[i].Name, "matchConditions": []object{condition}}
		}
		return json.Marshal(object{"webhooks": list})
	}
	neutralise, first := of(object{"name": lint.DispatchedCondition, "expression": "false"})
	takeBack, second := of(object{"name": lint.DispatchedCondition, "$patch": "delete"})
	return neutralise, takeBack, errors.Join(first, second)
}

// registration returns what to register with the dispatcher.
func registration(cluster, kind string, c *admissionregistrationv1.MutatingWebhookConfiguration, both bool) ([]byte, error) {
	phase, suffix := v1alpha1.PhaseValidating, ""
	if kind == "MutatingWebhookConfiguration" {
		phase = v1alpha1.PhaseMutating
	}
	if both {
		suffix = "-" + strings.ToLower(phase)
	}
	name := cluster + "." + c.Name + suffix // of objects, which are of all clusters
	configuration := &v1alpha1.WebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.Group + "/" + v1alpha1.Version, Kind: "WebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{manifest.ClusterAnnotation: cluster}},
		Spec:       v1alpha1.WebhookConfigurationSpec{Phase: phase, Webhooks: c.Webhooks},
	}
	binding := &v1alpha1.WebhookBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.Group + "/" + v1alpha1.Version, Kind: "WebhookBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.WebhookBindingSpec{Webhooks: []string{cluster + "/" + name + "/*"}, Mode: "Enforce"},
	}
	var out []byte
	for i, o := range []any{configuration, binding} {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(out, text...)
	}
	return out, nil
}

// Originals returns what a configuration of the cluster that the dispatcher calls may be
// called in the cluster itself, if it was mirrored or adopted. called is its name as the
// dispatcher has it; nil: it is for all clusters.
func Originals(cluster, called string) []string {
	name, ok := strings.CutPrefix(called, cluster+"/")
	if !ok {
		return nil
	}
	names := []string{name}
	if adopted, ok := strings.CutPrefix(name, cluster+"."); ok {
		names = append(names, adopted)
		for _, phase := range []string{v1alpha1.PhaseMutating, v1alpha1.PhaseValidating} {
			if of, ok := strings.CutSuffix(adopted, "-"+strings.ToLower(phase)); ok {
				names = append(names, of)
			}
		}
	}
	return names
}
