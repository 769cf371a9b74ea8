// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/pki"
)

// BenchmarkAdmission is one admission of a 6 KB review, from its caller's socket
// to the webhooks' and back, everything over TLS connections that are kept. Caller
// and webhooks run in the same process and allocate nothing, so the allocations
// are the dispatcher's.
func BenchmarkAdmission(b *testing.B) {
	for _, webhooks := range []int{1, 5, 10} {
		b.Run(fmt.Sprintf("webhooks=%d", webhooks), func(b *testing.B) {
			c := newPlainCaller(b, webhooks)
			b.ReportAllocs()
			for b.Loop() {
				c.ask()
			}
		})
	}
}

// plainCaller asks the same again and again over one connection.
type plainCaller struct {
	b       testing.TB
	conn    net.Conn
	request []byte
	answer  []byte // what is expected
	got     []byte
}

func newPlainCaller(b testing.TB, webhooks int) *plainCaller {
	b.Helper()
	w := newWorld(b)
	w.registerPlain(webhooks)
	p := w.start("log: {level: error}\nreloadInterval: 1h\n")
	address := p.awaitReady()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "east.crt"), filepath.Join(w.dir, "east.key"))
	if err != nil {
		b.Fatal(err)
	}
	conn, err := tls.Dial("tcp", address, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.authority.Pool(), Certificates: []tls.Certificate{certificate}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	c := &plainCaller{b: b, conn: conn, request: plainRequest(), got: make([]byte, 8<<10)}
	for range 3 { // connections are dialled, and pools filled
		c.write()
		n, err := conn.Read(c.got)
		if err != nil {
			b.Fatal(err)
		}
		c.answer = append(c.answer[:0], c.got[:n]...)
	}
	if !bytes.Contains(c.answer, []byte(`"allowed":true`)) {
		b.Fatalf("the answer is %s", c.answer)
	}
	return c
}

func plainRequest() []byte {
	const size = 6 << 10
	body := strings.Replace(podReview, `"metadata":{"name":"p"}`, `"metadata":{"name":"p"},"spec":{"containers":[`+containers(size-len(podReview))+`]}`, 1)
	return fmt.Appendf(nil, "POST /v1/clusters/east/validate?timeout=10s HTTP/1.1\r\nHost: dispatcher\r\nUser-Agent: kube-apiserver-admission\r\n"+
		"Content-Type: application/json\r\nAccept: application/json, */*\r\nAccept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// containers are about size bytes of them.
func containers(size int) string {
	var out strings.Builder
	for i := 0; out.Len() < size; i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"name":"c%d","image":"registry.example.com/team/app-%d:v1.%d","env":[{"name":"A_%d","value":"%d"}],"ports":[{"containerPort":%d}]}`, i, i, i, i, i*7919, 8000+i)
	}
	return out.String()
}

func (c *plainCaller) write() {
	if _, err := c.conn.Write(c.request); err != nil {
		c.b.Fatal(err)
	}
}

func (c *plainCaller) ask() {
	c.write()
	if _, err := io.ReadFull(c.conn, c.got[:len(c.answer)]); err != nil {
		c.b.Fatal(err)
	}
}

// registerPlain registers webhooks that say yes to podReview, each at an address
// of its own.
func (w *world) registerPlain(n int) {
	w.t.Helper()
	ca, _ := json.Marshal(w.authority.PEM) // []byte marshals as base64
	out := []byte("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: policies}\nwebhooks:\n")
	for i := range n {
		out = fmt.Appendf(out, `- name: hook-%d.example.com
  clientConfig: {url: "https://%s/check", caBundle: %s}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 10
  admissionReviewVersions: [v1]
`, i, w.plainWebhook(), ca)
	}
	w.write("registry/webhooks.yaml", out)
}

// plainWebhook serves a webhook that allocates nothing, and returns its address.
func (w *world) plainWebhook() string {
	w.t.Helper()
	pair, err := w.authority.Issue(pki.Subject{CommonName: "webhook", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		w.t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerPlainly(conn)
		}
	}()
	w.t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

const plainAnswer = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1","allowed":true}}`

// answerPlainly answers every request of a connection.
func answerPlainly(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var (
		r      = bufio.NewReaderSize(conn, 64<<10)
		answer = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(plainAnswer), plainAnswer)
	)
	for {
		length, err := contentLength(r)
		if err != nil {
			return
		}
		if _, err := r.Discard(length); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// contentLength reads the head of a request.
func contentLength(r *bufio.Reader) (length int, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= len("\r\n") {
			return length, nil
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
}
