// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// BenchmarkFiveWebhooks is P9: what an admission allocates that five webhooks with
// selectors and conditions are asked about, over TLS on both sides. The caller and the webhooks are in this
// process and speak just enough HTTP to allocate nothing themselves; crypto/tls does
// on their behalf, for some of the records that it reads.
func BenchmarkFiveWebhooks(b *testing.B) {
	ask := asker(b, 5, terseWebhook+restrictions)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

// TestAllocations holds the allocations of an admission down, with one webhook and
// with five, with and without selectors and conditions: those of crypto/tls on all
// sides included, which are all but two. One of those is for the caller's trace.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector, pools drop what they like")
	}
	for _, tt := range []struct {
		name            string
		webhooks        int
		webhook         string
		most, mostBytes uint64
	}{
		{"1 bare webhook", 1, terseWebhook, 6, 224},
		{"1 webhook", 1, terseWebhook + restrictions, 6, 224}, // which cost none
		{"5 bare webhooks", 5, terseWebhook, 14, 416},
		{"5 webhooks", 5, terseWebhook + restrictions, 14, 416},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects, size := usualAllocations(asker(t, tt.webhooks, tt.webhook))
			t.Logf("%d allocations, %d bytes", objects, size)
			if objects > tt.most || size > tt.mostBytes {
				t.Errorf("%d allocations of %d bytes for an admission, at most %d of %d are meant", objects, size, tt.most, tt.mostBytes)
			}
		})
	}
}

// usualAllocations returns what do allocates, as the median of many times, and of
// all goroutines. A busy machine adds to some of them: a hedge, a record of TLS that
// is read in pieces, work in the background. A garbage collection, which would empty
// pools, there is not.
func usualAllocations(do func()) (objects, bytes uint64) {
	const times = 1001
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	all := make([][2]uint64, times)
	for i := range all {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		all[i] = [2]uint64{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}
	}
	median := func(which int) uint64 {
		slices.SortFunc(all, func(a, b [2]uint64) int { return cmp.Compare(a[which], b[which]) })
		return all[times/2][which]
	}
	return median(0), median(1)
}

// asker starts a dispatcher with n webhooks, and returns what asks it once.
func asker(b testing.TB, n int, webhook string) (ask func()) {
	b.Helper()
	w, review := newWorld(b), payload.PodCreate()
	w.registerTerse(n, webhook, review.UID())
	return w.asker()
}

// asker starts a dispatcher with what is registered, and returns what asks it once.
func (w *world) asker() (ask func()) {
	b, review := w.t, payload.PodCreate()
	b.Helper()
	address := w.start("lameDuck: 0s\nreloadInterval: 1h\nlog: {level: warn}\n").awaitReady()
	certificate, err := tls.LoadX509KeyPair(w.dir+"/east.crt", w.dir+"/east.key")
	if err != nil {
		b.Fatal(err)
	}
	conn, err := tls.Dial("tcp", address, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.authority.Pool(), Certificates: []tls.Certificate{certificate}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	request := fmt.Appendf(nil, "POST /v1/clusters/east/validate?timeout=10s HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\ntraceparent: %s\r\nContent-Length: %d\r\n\r\n%s", unsampled, len(review.Body), review.Body)
	answers := bufio.NewReaderSize(conn, 16<<10)
	ask = func() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		body, err := message(answers)
		if err != nil || !bytes.Contains(body, []byte(`"allowed":true`)) {
			b.Fatalf("%s, %v", body, err)
		}
	}
	for range 1000 { // fills pools and windows
		ask()
	}
	return ask
}

// registerTerse registers n webhooks that allow the review with this uid.
func (w *world) registerTerse(n int, webhook, uid string) {
	w.t.Helper()
	pair, err := w.authority.Issue(pki.OnLoopback("webhook"))
	if err != nil {
		w.t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		w.t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})
	if err != nil {
		w.t.Fatal(err)
	}
	go serveTerse(ln, uid)
	w.t.Cleanup(func() { _ = ln.Close() })
	ca, _ := json.Marshal(w.authority.PEM) // []byte marshals as base64
	var out strings.Builder
	out.WriteString("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: policy}\nwebhooks:\n")
	for i := range n {
		fmt.Fprintf(&out, webhook, i, ln.Addr(), ca)
	}
	w.write("registry/webhooks.yaml", []byte(out.String()))
}

const terseWebhook = `- name: policy-%[1]d.example.com
  clientConfig: {url: "https://%[2]s/policy-%[1]d", caBundle: %[3]s}
  rules: [{operations: ["*"], apiGroups: [""], apiVersions: ["v1"], resources: [pods]}]
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 10
  admissionReviewVersions: [v1]
`

// restrictions are all else that decides whether the webhook is called.
const restrictions = `  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}
  objectSelector: {matchExpressions: [{key: policy.example.com/exempt, operator: DoesNotExist}]}
  matchConditions: [{name: not-a-node, expression: "!('system:nodes' in request.userInfo.groups) && request.userInfo.username != 'policy-%[1]d'"}, {name: labelled, expression: "has(object.metadata.labels) && !('policy.example.com/skip' in object.metadata.labels)"}]
`

// serveTerse answers every message on every connection with the same bytes.
func serveTerse(ln net.Listener, uid string) {
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, uid)
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for requests := bufio.NewReaderSize(conn, 32<<10); ; {
				if _, err := message(requests); err != nil {
					return
				}
				if _, err := conn.Write(answer); err != nil {
					return
				}
			}
		}()
	}
}

// message reads one message of HTTP/1.1 and returns its body, which is good until
// the next one.
func message(r *bufio.Reader) ([]byte, error) {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return nil, err
			}
		}
	}
	body, err := r.Peek(length)
	if err != nil {
		return nil, err
	}
	_, err = r.Discard(length)
	return body, err
}
