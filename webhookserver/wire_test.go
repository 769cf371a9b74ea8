// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

var update = flag.Bool("update", false, "rewrite the dumps in docs/webhook-authors.md")

// The dumps in the document are what apimachinery writes today.
func TestDumpsInDocument(t *testing.T) {
	const path = "../docs/webhook-authors.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	req := smallRequest()
	denied := webhookserver.Denied(http.StatusForbidden, "no owner")
	denied.UID = req.UID
	answer := review(v1, nil)
	answer.Response = denied

	document := string(raw)
	document = replaced(t, document, "review", dump(t, encode(t, mediaProtobuf, review(v1, req))))
	document = replaced(t, document, "answer", dump(t, encode(t, mediaProtobuf, answer)))
	if *update {
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(document, string(raw)); diff != "" {
		t.Errorf("not current: go test ./webhookserver -run TestDumpsInDocument -update (-want +got):\n%s", diff)
	}
}

// smallRequest is what the document shows.
func smallRequest() *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID:       "705ab4f5",
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Name:      "web",
		Namespace: "shop",
		Operation: admissionv1.Create,
		UserInfo:  authenticationv1.UserInfo{Username: "alice"},
		Object:    runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`)},
		DryRun:    new(bool),
	}
}

// replaced returns the document with another text between the marks of name.
func replaced(t *testing.T, document, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n```\n", "```\n<!-- end of "+name+" -->"
	before, rest, found := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("the document has no marks of %s", name)
	}
	return before + begin + text + end + after
}

// message names the fields of a protobuf message that the dumps show.
type message map[uint64]field

type field struct {
	name string
	of   message // nil if it is no message
}

// unknownOf is runtime.Unknown around an AdmissionReview.
func unknownOf() message {
	raw := message{1: {"raw", nil}}
	return message{
		1: {"typeMeta", message{1: {"apiVersion", nil}, 2: {"kind", nil}}},
		2: {"raw", message{
			1: {"request", message{
				1: {"uid", nil}, 4: {"subResource", nil}, 5: {"name", nil}, 6: {"namespace", nil}, 7: {"operation", nil},
				2: {"kind", message{1: {"group", nil}, 2: {"version", nil}, 3: {"kind", nil}}},
				3: {"resource", message{1: {"group", nil}, 2: {"version", nil}, 3: {"resource", nil}}},
				8: {"userInfo", message{1: {"username", nil}, 2: {"uid", nil}}},
				9: {"object", raw}, 10: {"oldObject", raw}, 12: {"options", raw},
				11: {"dryRun", nil}, 15: {"requestSubResource", nil},
			}},
			2: {"response", message{
				1: {"uid", nil}, 2: {"allowed", nil},
				3: {"status", message{
					1: {"metadata", message{1: {"selfLink", nil}, 2: {"resourceVersion", nil}, 3: {"continue", nil}}},
					2: {"status", nil}, 3: {"message", nil}, 4: {"reason", nil}, 6: {"code", nil},
				}},
			}},
		}},
		3: {"contentEncoding", nil}, 4: {"contentType", nil},
	}
}

// dump writes every byte of a review with the field that it belongs to.
func dump(t *testing.T, wire []byte) string {
	t.Helper()
	d := &dumper{t: t, wire: wire}
	d.line(4, `"k8s\0"`)
	d.message(unknownOf(), len(wire), 0)
	return d.out.String()
}

type dumper struct {
	t    *testing.T
	wire []byte
	at   int
	out  bytes.Buffer
}

func (d *dumper) message(m message, end, depth int) {
	for d.at < end {
		tag, n := binary.Uvarint(d.wire[d.at:])
		f, known := m[tag>>3]
		if n <= 0 || !known {
			d.t.Fatalf("field %d at %d has no name", tag>>3, d.at)
		}
		label := fmt.Sprintf("%*s%d %s", 2*depth, "", tag>>3, f.name)
		value, size := binary.Uvarint(d.wire[d.at+n:])
		switch head := n + size; {
		case tag&7 == 0:
			d.line(head, fmt.Sprintf("%s = %d", label, value))
		case f.of != nil:
			d.line(head, fmt.Sprintf("%s, %d bytes", label, value))
			d.message(f.of, d.at+int(value), depth+1)
		default:
			d.line(head+int(value), fmt.Sprintf("%s = %s", label, quoted(d.wire[d.at+head:d.at+head+int(value)])))
		}
	}
}

// quoted quotes text so that JSON stays readable.
func quoted(text []byte) string {
	if bytes.HasPrefix(text, []byte("{")) {
		return string(text)
	}
	return strconv.Quote(string(text))
}

// line writes the next bytes, eight in a row, and what they say.
func (d *dumper) line(bytes int, says string) {
	for row := range slices.Chunk(d.wire[d.at:d.at+bytes], 8) {
		fmt.Fprintln(&d.out, strings.TrimRight(fmt.Sprintf("%04x  %-23x  %s", d.at, spaced(row), says), " "))
		d.at += len(row)
		says = ""
	}
}

// spaced prints bytes with a space between.
type spaced []byte

func (s spaced) Format(f fmt.State, _ rune) {
	width, _ := f.Width()
	fmt.Fprintf(f, "%-*s", width, fmt.Sprintf("% x", []byte(s)))
}
