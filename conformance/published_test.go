// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"net/url"
	"path/filepath"
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
	name, kind, phase string
	webhooks          any
	contains          string // what the error must say
	attributes        func() admission.Attributes
	direct            func(t *testing.T, r route, a admission.Attributes) error
	via               func(t *testing.T, r route, outer admissionregistrationv1.ValidatingWebhook, a admission.Attributes) error

	cluster string // in the registry; empty: not carried
}

// TestPublished decides every published case twice. Allow or deny, code, the
// resulting object and the webhooks' audit annotations must be the same.
func TestPublished(t *testing.T) {
	server := webhooktesting.NewTestServer(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	cases := append(validatingCases(address), mutatingCases(address)...)
	c := &carrier{t: t, dir: t.TempDir(), server: address}
	c.credentials()
	for i := range cases {
		if _, listed := notCarried[cases[i].name]; !listed {
			cases[i].cluster = c.carry(cases[i].kind, cases[i].webhooks)
		}
	}
	p := serve(t, c.dir)
	counts := map[string]int{}
	for _, each := range cases {
		t.Run(each.kind+"/"+each.name, func(t *testing.T) {
			if each.cluster == "" {
				counts["not carried"]++
				t.Log("not carried: " + notCarried[each.name])
				return
			}
			counts[each.compare(t, c.dir, p, address)]++
		})
	}
	t.Logf("%d published cases: %v", len(cases), counts)
}

// compare decides the case both ways and returns what became of it.
func (c *published) compare(t *testing.T, dir string, p *process, server *url.URL) string {
	a, b := c.attributes(), c.attributes()
	want := decided(c.direct(t, direct(server), a), a)
	p.pki.issue(t, dir, c.cluster, nil)
	caller := route{server, asCaller{&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData:   p.pki.pem,
		CertFile: filepath.Join(dir, c.cluster+".crt"),
		KeyFile:  filepath.Join(dir, c.cluster+".key"),
	}}}}
	got := decided(c.via(t, caller, outer(p, c.cluster, c.phase), b), b)
	if want.code() != got.code() {
		t.Errorf("directly: code %d, %v\nthrough the dispatcher: code %d, %v", want.code(), want.err, got.code(), got.err)
	}
	if want.err == nil {
		if diff := cmp.Diff(a.GetObject(), b.GetObject()); diff != "" {
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

// compareTexts holds what users and auditors see: a denial's own text, and each
// audit annotation of a webhook, under our name for it.
func (c *published) compareTexts(t *testing.T, want, got decision) {
	if want.err != nil && want.code() < 500 && !strings.Contains(got.err.Error(), c.contains) {
		t.Errorf("the denial does not say %q: %v", c.contains, got.err)
	}
	for key, value := range want.annotations {
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

func validatingCases(server *url.URL) []published {
	var cases []published
	for _, tt := range webhooktesting.NewNonMutatingTestCases(server) {
		cases = append(cases, published{
			name: tt.Name, kind: "Validating", phase: "validate", webhooks: tt.Webhooks, contains: tt.ErrorContains,
			attributes: func() admission.Attributes { return webhooktesting.NewAttribute(namespace, nil, tt.IsDryRun) },
			direct: func(t *testing.T, r route, a admission.Attributes) error {
				return r.validate(t, tt.Webhooks, a)
			},
			via: func(t *testing.T, r route, outer admissionregistrationv1.ValidatingWebhook, a admission.Attributes) error {
				return r.validate(t, []admissionregistrationv1.ValidatingWebhook{outer}, a)
			},
		})
	}
	return cases
}

func mutatingCases(server *url.URL) []published {
	const configuration = "test-webhooks" // the name that the published data source gives
	var cases []published
	for _, tt := range append(webhooktesting.NewMutatingTestCases(server, configuration),
		webhooktesting.ConvertToMutatingTestCases(webhooktesting.NewNonMutatingTestCases(server), configuration)...) {
		cases = append(cases, published{
			name: tt.Name, kind: "Mutating", phase: "mutate", webhooks: tt.Webhooks, contains: tt.ErrorContains,
			attributes: func() admission.Attributes {
				if tt.IsCRD {
					return webhooktesting.NewAttributeUnstructured(namespace, tt.AdditionalLabels, tt.IsDryRun)
				}
				return webhooktesting.NewAttribute(namespace, tt.AdditionalLabels, tt.IsDryRun)
			},
			direct: func(t *testing.T, r route, a admission.Attributes) error {
				return r.admit(t, tt.Webhooks, a)
			},
			via: func(t *testing.T, r route, outer admissionregistrationv1.ValidatingWebhook, a admission.Attributes) error {
				return r.admit(t, webhooktesting.ConvertToMutatingWebhooks([]admissionregistrationv1.ValidatingWebhook{outer}), a)
			},
		})
	}
	return cases
}
