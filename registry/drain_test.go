// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// patience bounds every wait of these tests. Nothing is expected to come near it.
const patience = 20 * time.Second

// slowHook is a webhook that answers when it is told to.
type slowHook struct {
	*httptest.Server
	asked, closed chan struct{}
	answer        func()
}

func newSlowHook(t *testing.T) *slowHook {
	told := make(chan struct{})
	h := &slowHook{asked: make(chan struct{}, 1), closed: make(chan struct{}, 1), answer: sync.OnceFunc(func() { close(told) })}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		_, _ = io.Copy(io.Discard, in.Body)
		h.asked <- struct{}{}
		<-told
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}}`)
	}))
	h.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			h.closed <- struct{}{}
		}
	}
	h.StartTLS()
	t.Cleanup(func() { h.answer(); h.Close() })
	return h
}

// manifest is a Configuration of this webhook.
func (h *slowHook) manifest() string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return hookAt(fmt.Sprintf("%q, caBundle: %s", h.URL, base64.StdEncoding.EncodeToString(authority)))
}

func hookAt(url string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policy}
webhooks:
- {name: slow.example.com, clientConfig: {url: %s}, sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 20}
`, url)
}

// A Target that has left drains until its last call has ended, also if no admission
// is left: only then are its connections closed and is it called safe to stop. If it
// comes back meanwhile, it goes on as it was.
func TestDrainedAfterItsLastCall(t *testing.T) {
	hook, h := newSlowHook(t), newHome(t)
	var (
		log      bytes.Buffer
		probed   atomic.Int64
		r        *registry.Registry
		loopback = transport.AddressPolicy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		resolver = transport.NewResolver(transport.ResolverConfig{Addresses: loopback})
		client   = transport.NewClient(transport.ClientConfig{Addresses: loopback})
	)
	r = registry.New(registry.Settings{
		Sources: manifest.Directories(h.dir), Compile: compile.Options{Addresses: loopback}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Resource: func(t *transport.Target) chain.Resource {
			return resource{Unconnected: registry.Unconnected{Target: t},
				open:  func() { resolver.Refresh(context.Background(), t) },
				ready: func(*chain.DryRun) error { probed.Add(1); return nil }}
		},
	})
	serve := func(manifest string) {
		t.Helper()
		h.put("webhook.yaml", manifest)
		h.good(r)
		h.good(r)
	}
	expect := func(when string, draining []*transport.Target, closed ...string) {
		t.Helper()
		if got := r.Draining(); len(got) != len(draining) || len(got) == 1 && got[0] != draining[0] {
			t.Errorf("%s: draining %v, want %v", when, got, draining)
		}
		if diff := cmp.Diff(closed, drained(&log, "")); diff != "" {
			t.Errorf("%s, drained (-want +got):\n%s", when, diff)
		}
	}
	const elsewhere = "https://192.0.2.1/"

	serve(hook.manifest())
	target := r.Snapshot().Targets[0]
	answered := make(chan error, 1)
	go func() {
		message, err := asking(target)
		if err != nil {
			answered <- err
			return
		}
		defer message.Release()
		_, err = client.Call(context.Background(), transport.Call{Target: target, Message: message, Cluster: "dev", Deadline: time.Now().Add(patience)})
		answered <- err
	}()
	<-hook.asked
	serve(hookAt(elsewhere))
	expect("removed under a call", []*transport.Target{target})
	serve(hook.manifest())
	if r.Snapshot().Targets[0] != target || probed.Load() != 1 {
		t.Errorf("back under a call: another Target, or %d probes", probed.Load())
	}
	expect("back under a call", nil, elsewhere)
	serve(hookAt(elsewhere))
	expect("removed again", []*transport.Target{target}, elsewhere)
	hook.answer()
	if err := <-answered; err != nil {
		t.Errorf("the call failed: %v", err)
	}
	client.Close()
	h.good(r)
	h.good(r)
	expect("after the call", nil, elsewhere, hook.URL)
	select {
	case <-hook.closed:
	case <-time.After(patience):
		t.Error("the connection is still open")
	}
}

// asking is the Message of a review to a target.
func asking(target *transport.Target) (*webhook.Message, error) {
	body := codec.NewBody([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}`), nil)
	review := &codec.Review{Body: body, UID: []byte("u"), Version: codec.V1}
	view := hook.NewView(hook.Source{Review: review})
	codec.ReleaseReview(review)
	defer view.Release()
	return (&webhook.Hook{Target: target, Version: codec.V1}).Message(&hook.Question{View: view}, codec.Form{Version: codec.V1})
}
