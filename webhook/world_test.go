// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"
	"github.com/admission-dispatcher/dispatcher/transport"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const (
	serviceName = "policy.shop.svc"
	allowBody   = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u-1","allowed":true}}`
	denyBody    = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u-1","allowed":false}}`
	patience    = 20 * time.Second // bounds every wait; nothing is expected to come near it
)

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// certificateOf is what the authority issues to serviceName.
func certificateOf(t *testing.T, a *pki.Authority) tls.Certificate {
	t.Helper()
	pair, err := a.Issue(pki.Subject{DNSNames: []string{serviceName}})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// resolved is the Target of a spec, with its Endpoints.
func resolved(t *testing.T, spec transport.TargetSpec) *transport.Target {
	t.Helper()
	target, err := transport.NewTarget(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	transport.NewResolver(transport.ResolverConfig{Addresses: loopback}).Refresh(t.Context(), target)
	return target
}

var loopback = transport.AddressPolicy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// serve serves a webhook, and returns the Target where it is and who calls it.
func serve(t *testing.T, answer scripted.Answer) (*transport.Target, *transport.Client) {
	t.Helper()
	authority := newAuthority(t)
	server := scripted.Serve(certificateOf(t, authority))
	t.Cleanup(server.Close)
	server.Handle("", answer)
	c := transport.NewClient(transport.ClientConfig{Addresses: loopback})
	t.Cleanup(c.Close)
	return resolved(t, transport.TargetSpec{
		URL:       "https://" + serviceName + "/check",
		CABundle:  authority.PEM,
		Endpoints: []transport.EndpointSpec{{Address: server.Address()}},
	}), c
}

// messageTo is what asks a webhook about a review, in a form.
func messageTo(t *testing.T, h *Hook, v *hook.View, form codec.Form) *Message {
	t.Helper()
	m, err := h.Message(&hook.Question{View: v}, form)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
