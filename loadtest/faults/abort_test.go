// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/adversary"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// abortedTimeout is the timeout that aborted calls ask for.
const abortedTimeout = 2 * time.Second

// wordy is a mutating webhook whose patch for the attacker takes long to be read.
const wordy = "well-wordy.example.com"

// hooksToAbort are the usual webhooks, and wordy.
func hooksToAbort() []history.Webhook {
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/metadata/annotations/wordy","value":"%s"}]`, strings.Repeat("x", 512<<10))
	return append((&row{timeout: 10}).webhooks(), history.Webhook{
		Name: wordy, Phase: history.Mutating, FailurePolicy: history.Fail, SideEffects: history.NoSideEffects, Timeout: 5 * time.Second,
		Truth: func(string) history.Answer { return history.Answer{Allowed: true, Patch: patch} },
	})
}

// abort has n callers leave while their review is in every state, one after the
// other: while they send it; when it is sent, which is while it waits for a slot, is
// on its way, or the webhooks are called; and while the answer comes. Every second
// leaves with a RST.
func abort(n int) adversary.Attack {
	return func(ctx context.Context, t adversary.Target, tally *adversary.Tally) {
		var turn atomic.Int64
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					i := turn.Add(1)
					if err := abortOne(ctx, t, i); err == nil {
						tally.Requests.Add(1)
					}
					pass(200 * time.Millisecond)
				}
			})
		}
		wg.Wait()
	}
}

func abortOne(ctx context.Context, t adversary.Target, i int64) error {
	raw, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }()
	if tcp := raw.(*net.TCPConn); i%2 == 0 {
		_ = tcp.SetLinger(0)
	}
	conn := tls.Client(raw, t.TLS)
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	path, size, sent := "validate", 40<<10, 40<<10
	wait := func() { pass(time.Duration(i%8) * 20 * time.Millisecond) }
	switch i / 2 % 8 {
	case 0, 1:
		sent /= 2
	case 2:
		path, size, sent = "mutate", 2<<10, 2<<10
		wait = func() { _, _ = conn.Read(make([]byte, 1)) }
	}
	body := reviewOf(fmt.Sprintf("abort-%d", i), size)
	_, err = fmt.Fprintf(conn, "POST /v1/clusters/%s/%s?timeout=%.0fs HTTP/1.1\r\nHost: dispatcher\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		t.Cluster, path, abortedTimeout.Seconds(), len(body), body[:min(sent, len(body))])
	if err == nil {
		wait()
	}
	return err
}

// reviewOf is a review of about so many bytes.
func reviewOf(uid string, size int) string {
	const kind = `{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"}`
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":%q,"operation":"CREATE","kind":%s,"requestKind":%s,"name":"p","namespace":"shop",`+
		`"userInfo":{"username":"user"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","annotations":{"a":%q}}},"dryRun":false}}`,
		uid, kind, strings.ReplaceAll(kind, `"resource":{`, `"requestResource":{`), strings.Repeat("x", max(1, size-600)))
}

// holdings is what a process holds for calls.
type holdings struct {
	goroutines, descriptors int     // without those of connections that are kept
	bodies, inFlight        float64 // of the attacker
}

func (w *world) holdings() holdings {
	d := w.servers[0]
	n, err := descriptors(d)
	if err != nil {
		w.t.Log(err)
	}
	of := fmt.Sprintf("cluster=%q", attacker)
	// Connections to webhooks that have answered are kept.
	kept := w.metric(d, "dispatcher_target_connections", `target="https://hooks.example.com/well`)
	return holdings{w.goroutines(d), n - int(kept), w.metric(d, "dispatcher_body_bytes", of), w.metric(d, "dispatcher_requests_in_flight", of)}
}

// letHang notes what the process holds, then lets the webhooks hang for the attacker
// and holds requests to them back.
func letHang(w *world) {
	w.before = w.holdings()
	behave(script.Behaviour{Hang: true, Cluster: attacker})(w)
	all(proxy.Fault{RequestDelay: 50 * time.Millisecond})(w)
}

// allReturned: what aborted calls have taken is given back by their deadline. There
// were calls in every state.
func allReturned(t *findings, w *world, _ *record) {
	d, of := w.servers[0], fmt.Sprintf("cluster=%q", attacker)
	reached := map[string]int{}
	for _, s := range w.scripts() {
		for _, a := range s.Attempts() {
			if a.Cluster == attacker {
				reached[a.Webhook]++
			}
		}
	}
	cut := w.metric(d, "dispatcher_refusals_total", of, `reason="cut_short"`) + w.metric(d, "dispatcher_requests_total", of, `decision="unreadable"`)
	noSlot := w.metric(d, "dispatcher_webhook_errors_total", `cause="Shed"`)
	progress("F26  %.0f reviews aborted in their body, %d in %s, %d in %s, %.0f without a slot", cut, reached[hurtFail], hurtFail, reached[wordy], wordy, noSlot)
	if cut == 0 || reached[hurtFail] == 0 || reached[wordy] == 0 || noSlot == 0 {
		t.Error("not every state was reached")
	}
	const more = 20 // connections and goroutines that others have opened meanwhile
	var now holdings
	ok := within(time.Second, func() bool {
		now = w.holdings()
		return now.goroutines <= w.before.goroutines+more && now.descriptors <= w.before.descriptors+more && now.bodies == 0 && now.inFlight == 0
	})
	progress("F26  before: %+v, after: %+v", w.before, now)
	if !ok {
		for what, grown := range map[string]bool{
			"goroutines": now.goroutines > w.before.goroutines+more, "descriptors": now.descriptors > w.before.descriptors+more,
			"Bodies": now.bodies > 0, "admissions": now.inFlight > 0,
		} {
			if grown {
				t.Errorf("%s have not returned by the deadline: %+v before, %+v after", what, w.before, now)
			}
		}
	}
}
