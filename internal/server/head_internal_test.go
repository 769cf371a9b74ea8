// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
)

// headOf reads a head as fasthttp hands it over; lines stand between the request line
// and the empty line.
func headOf(t *testing.T, requestLine string, lines ...string) (head, refusal) {
	t.Helper()
	h := &fasthttp.RequestHeader{}
	text := requestLine + " HTTP/1.1\r\n" + strings.Join(append(lines, "", ""), "\r\n")
	if err := h.Read(bufio.NewReaderSize(strings.NewReader(text), 64<<10)); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Decompress: true}.withDefaults()
	return readHead(h, &cfg)
}

// Everything that the handler looks at is read at once, in whatever order the lines
// stand, and is there for the records though the head is refused.
func TestReadHead(t *testing.T) {
	h, r := headOf(t, "POST /v1/clusters/a/mutate/only.0123456789?timeout=3s", "Content-Encoding: GZIP", "Authorization: bearer abc",
		"Host: dispatcher:8443", "Expect: 100-continue", "Content-Type: application/vnd.kubernetes.protobuf")
	got := fmt.Sprintf("%s %s; %s %v %s; %v; %s; %t %s; %t; %v; %s; %v", h.method, h.path, h.route.cluster, h.route.phase, h.route.segment,
		h.timeout, h.host, h.authorization.shown, h.authorization.token, h.continues, h.encoding, h.compression, r == accepted)
	want := "POST /v1/clusters/a/mutate/only.0123456789; a mutate only.0123456789; 3s; dispatcher:8443; true abc; true; Protobuf; gzip; true"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	h, r = headOf(t, "GET /v1/clusters/a/validate", "Host: x", "Content-Type: application/json")
	if r != notPost || string(h.method) != "GET" || string(h.path) != "/v1/clusters/a/validate" || string(h.route.cluster) != "a" ||
		h.route.phase != chain.Validating || h.timeout != 10*time.Second || h.authorization.shown || h.continues || h.encoding != codec.JSON || h.compression != "" {
		t.Errorf("refused for %v: %+v", r, h)
	}

	none, _ := readHead(&fasthttp.RequestHeader{}, &Config{})
	if len(none.method)+len(none.path) > 0 {
		t.Errorf("of a head that was not received: %s %s", none.method, none.path)
	}
}

func TestHeadersAreLimited(t *testing.T) {
	lines := []string{"Host: x", "Content-Type: application/json", "X: "}
	size := len(strings.Join(append(lines, ""), "\r\n")) + len("\r\n")
	for beyond, want := range []refusal{accepted, longHeaders} {
		padded := append(lines[:2:2], lines[2]+strings.Repeat("y", headerLimit-size+beyond))
		if _, r := headOf(t, "POST /v1/clusters/a/validate", padded...); r != want {
			t.Errorf("%d bytes beyond the limit: %v, want %v", beyond, r, want)
		}
	}
}

// What fasthttp hides or has overwritten is found in any spelling, and nothing is
// taken for it.
func TestRawHeaders(t *testing.T) {
	for _, tt := range []struct {
		lines                          string
		encoded, continues, isExpected bool
	}{
		{"", false, false, true},
		{"\n\r\nE\nT\r\nExpec: x\nTransfer: chunked\n", false, false, true},
		{"eXPECT:100-continue\r\n", false, true, true},
		{"Expect:", false, true, false},
		{"Expect: 100-continue\r\nExpect: 200-ok\r\n", false, true, false},
		{"Expect: 200-ok\r\nExpect: 100-continue\r\n", false, true, false},
		{"transfer-ENCODING", true, false, true},
		{"Transfer-Encoding\t: chunked\r\n", true, false, true},
	} {
		encoded, continues, isExpected := rawHeaders([]byte(tt.lines))
		if encoded != tt.encoded || continues != tt.continues || isExpected != tt.isExpected {
			t.Errorf("%q: %t, %t, %t", tt.lines, encoded, continues, isExpected)
		}
	}
}

func TestParseAuthorization(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   string
	}{
		{nil, ""},
		{[]string{"Bearer abc"}, "abc"},
		{[]string{"bEARER abc"}, "abc"},
		{[]string{"Bearer "}, ""},
		{[]string{"Bear"}, ""},
		{[]string{""}, ""},
		{[]string{"Basic abcdef"}, ""},
		{[]string{"Bearer abc", "Bearer abc"}, ""},
	} {
		var values [][]byte
		for _, v := range tt.values {
			values = append(values, []byte(v))
		}
		if a := parseAuthorization(values); a.shown != (len(values) > 0) || string(a.token) != tt.want {
			t.Errorf("%q: %t %q", tt.values, a.shown, a.token)
		}
	}
}

func TestNamesOfClusters(t *testing.T) {
	const valid = "abcdefghijklmnopqrstuvwxyz0123456789-."
	for c := range 256 {
		if got := isName([]byte{'a', byte(c), 'z'}); got != strings.ContainsRune(valid, rune(c)) {
			t.Errorf("%q in a name: %t", rune(c), got)
		}
	}
	if isName(nil) {
		t.Error("an empty name is one")
	}
}
