// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	webhooktesting "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	"k8s.io/client-go/rest"

	"github.com/google/go-cmp/cmp"
)

// published is one case of k8s.io/apiserver's webhook tests.
type published struct {
	list, name, kind string
	validating       []admissionregistrationv1.ValidatingWebhook
	mutating         []admissionregistrationv1.MutatingWebhook
	attributes       func() admission.Attributes
	server           *url.URL // of the webhooks
	contains         string   // what the error must say
	panics           string   // what the direct call of each webhook panics with
	took             *took    // nil: nobody measures

	cluster string // in the registry; empty: not carried
}

// id names a case: lists repeat names.
func (c *published) id() string { return c.list + "/" + c.kind + "/" + c.name }

// TestPublished decides every published case twice. Allow or deny, code, the
// resulting object, the webhooks' audit annotations and who failed open must be the
// same.
func TestPublished(t *testing.T) {
	var cases []published
	s := startPublished(t)
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		of := lists[name](s)
		if len(of) == 0 {
			t.Errorf("%s has no case", name)
		}
		for _, c := range of {
			c.list = name
			cases = append(cases, c)
		}
	}
	c := &carrier{t: t, dir: t.TempDir()}
	c.credentials()
	left := maps.Clone(notCarried)
	for i := range cases {
		if _, listed := notCarried[cases[i].id()]; !listed {
			cases[i].cluster = c.carry(&cases[i])
		}
		delete(left, cases[i].id())
	}
	if len(left) > 0 {
		t.Errorf("not carried, and not published either: %v", left)
	}
	p := serve(t, c.dir)
	counts := map[string]int{}
	for _, each := range cases {
		t.Run(each.id(), func(t *testing.T) {
			if each.cluster == "" {
				counts["not carried"]++
				t.Log("not carried: " + notCarried[each.id()])
				return
			}
			counts[each.compare(t, c.dir, p)]++
		})
	}
	t.Logf("%d published cases: %v", len(cases), counts)
}

// decide plays the case with some webhooks: its own, or the dispatcher alone.
func (c *published) decide(t *testing.T, r route, validating []admissionregistrationv1.ValidatingWebhook, mutating []admissionregistrationv1.MutatingWebhook) decision {
	t.Helper()
	var (
		ctx = c.took.in(t.Context())
		a   = c.attributes()
		err error
	)
	if c.kind == "Validating" {
		err = r.validate(ctx, t, validating, a)
	} else {
		err = r.admit(ctx, t, mutating, a)
	}
	c.took.check(ctx, t)
	return decided(err, a)
}

// compare decides the case both ways and returns what became of it.
func (c *published) compare(t *testing.T, dir string, p *process) string {
	want := c.decide(t, direct(c.server, c.panics), c.validating, c.mutating)
	issue(t, p.pki, dir, c.cluster)
	caller := route{c.server, asCaller{&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData:   p.pki.PEM,
		CertFile: filepath.Join(dir, c.cluster+".crt"),
		KeyFile:  filepath.Join(dir, c.cluster+".key"),
	}}}}
	phase := map[string]string{"Validating": "validate", "Mutating": "mutate"}[c.kind]
	ours := []admissionregistrationv1.ValidatingWebhook{outer(p, c.cluster, phase)}
	got := c.decide(t, caller, ours, webhooktesting.ConvertToMutatingWebhooks(ours))
	if want.code() != got.code() {
		t.Errorf("directly: code %d, %v\nthrough the dispatcher: code %d, %v", want.code(), want.err, got.code(), got.err)
	}
	if want.err == nil {
		if diff := cmp.Diff(want.attributes.GetObject(), got.attributes.GetObject()); diff != "" {
			t.Errorf("object (-directly +through the dispatcher):\n%s", diff)
		}
	}
	c.compareTexts(t, want, got)
	switch {
	case got.err == nil:
		return "allowed"
	case got.code() >= 500:
		return "failed closed"
	}
	return "denied"
}

// compareTexts compares what users and auditors see: a denial's own text, each
// audit annotation of a webhook, under our name for it, and who failed open.
func (c *published) compareTexts(t *testing.T, want, got decision) {
	if want.err != nil && want.code() < 500 && !strings.Contains(got.err.Error(), c.contains) {
		t.Errorf("the denial does not say %q: %v", c.contains, got.err)
	}
	failedOpen := strings.Split(got.annotations[outerName+"/dispatcher.dev.failed-open"], "; ")
	for key, value := range want.annotations {
		if strings.HasPrefix(key, "failed-open.") {
			if !slices.ContainsFunc(failedOpen, func(entry string) bool { return strings.Contains(entry, "/"+qualified(value)+" (") }) {
				t.Errorf("%s failed open directly, and through the dispatcher: %v", value, failedOpen)
			}
			continue
		}
		name, key, _ := strings.Cut(key, "/")
		if strings.HasSuffix(name, ".webhook.admission.k8s.io") {
			continue // the plugin's own, of its own webhooks
		}
		ours := fmt.Sprintf("%s/%s.%s", outerName, qualified(name), key)
		if got.annotations[ours] != value {
			t.Errorf("annotation %s is %q, want %q (%v)", ours, got.annotations[ours], value, got.annotations)
		}
	}
}
