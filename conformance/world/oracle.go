// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/pair"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// oracle is an API server that calls the webhooks of a variant itself.
type oracle struct {
	*caller.Caller
	place   string
	scripts map[string]script.Script
	server  *script.Server
}

func (w *World) oracle(c *random.Case, v variant) (*oracle, error) {
	at := w.place()
	o := &oracle{place: at, server: w.server, scripts: map[string]script.Script{}}
	options := caller.Options{
		Namespaces:     namespaces(c.Namespaces),
		Authentication: caller.WithCertificate(w.authority.PEM, nil, nil),
		Objects:        objects,
	}
	for _, configuration := range v.mutating {
		options.Mutating = append(options.Mutating, w.mutating(at, configuration, o.scripts))
	}
	for _, configuration := range v.validating {
		options.Validating = append(options.Validating, w.validating(at, configuration, o.scripts))
	}
	w.server.Add(o.scripts)
	var err error
	if o.Caller, err = caller.New(options); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *oracle) close() {
	o.Close()
	o.server.Remove(o.scripts)
}

// decide plays an admission, and can play it again with each validating webhook
// alone.
func (w *World) decide(o *oracle, c *random.Case, v variant, a caller.Admission) pair.Oracle {
	return pair.Oracle{
		Result:         o.Play(a),
		Place:          o.place,
		NotConvertible: v.notConvertible,
		Alone:          func() ([]pair.Alone, error) { return w.alone(c, v, a) },
	}
}

func (w *World) alone(c *random.Case, v variant, a caller.Admission) ([]pair.Alone, error) {
	var all []pair.Alone
	for _, configuration := range slices.SortedFunc(slices.Values(v.validating), byName) {
		for _, hook := range configuration.Webhooks {
			one := v
			one.validating = []random.Configuration{{Name: configuration.Name, Webhooks: []random.Webhook{hook}}}
			o, err := w.oracle(c, one)
			if err != nil {
				return nil, err
			}
			all = append(all, pair.Alone{Configuration: configuration.Name, Webhook: hook.Name, Result: o.Play(a)})
			o.close()
		}
	}
	return all, nil
}

func namespaces(labels map[string]map[string]string) []corev1.Namespace {
	var all []corev1.Namespace
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		l := maps.Clone(labels[name])
		if l == nil {
			l = map[string]string{}
		}
		l[corev1.LabelMetadataName] = name
		all = append(all, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l}})
	}
	return all
}

// mutating returns a configuration whose webhooks play their scripts at a place of
// their own, and adds the scripts.
func (w *World) mutating(at string, c random.Configuration, scripts map[string]script.Script) admissionregistrationv1.MutatingWebhookConfiguration {
	out := admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: at + c.Name}}
	for _, hook := range c.Webhooks {
		path := "/" + at + c.Name + "/" + hook.Name
		scripts[path] = hook.Script
		url := w.server.URL + path
		hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: w.authority.PEM}
		out.Webhooks = append(out.Webhooks, hook.MutatingWebhook)
	}
	return out
}

func (w *World) validating(at string, c random.Configuration, scripts map[string]script.Script) admissionregistrationv1.ValidatingWebhookConfiguration {
	m := w.mutating(at, c, scripts)
	return admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: m.ObjectMeta, Webhooks: caller.ValidatingOf(m.Webhooks)}
}

func byName(a, b random.Configuration) int {
	if a.Name < b.Name {
		return -1
	}
	return 1
}
