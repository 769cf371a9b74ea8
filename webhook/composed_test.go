// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// composedLimit is the limit of an answer's body here, in bytes: small, so that
// composed answers are over it.
const composedLimit = 8 << 10

// TestComposedAnswers composes answers at random and compares what we make of each
// with what kube-apiserver does: its HTTP client, its decoder and its verifier.
// COMPOSED_ANSWERS is their number, COMPOSED_SEED the first seed.
func TestComposedAnswers(t *testing.T) {
	n, first := fromEnvironment(t, "COMPOSED_ANSWERS", composedAnswers), fromEnvironment(t, "COMPOSED_SEED", 1)
	server := newAPIServer(t)
	ours := newReader(t)
	counts := map[string]int{}
	for i := range n {
		seed := first + i
		c := compose(uint64(seed), server)
		want := server.judge(c)
		for compat, got := range ours.judge(c) {
			compat := codec.Compatibility(compat)
			counts[fmt.Sprintf("kube-apiserver %s, compatibility %d %s", want.verdict, compat, got.verdict)]++
			if why := c.disagree(want, got, compat); why != "" {
				t.Fatalf("seed %d, compatibility %d: %s: kube-apiserver %s (%v), ours %s (%v)\nversion %v, mutating %v, of a + row %v\n%.3000q",
					seed, compat, why, want.verdict, want.err, got.verdict, got.err, c.version, c.mutating, c.plus, bytes.Join(bytes.Fields(c.raw), []byte(" ")))
			}
		}
	}
	for _, verdict := range []string{"allow", "deny", "fail"} {
		if n >= 20_000 && counts[fmt.Sprintf("kube-apiserver %s, compatibility 1 %s", verdict, verdict)] < n/50 {
			t.Errorf("hardly any answer is %s for both", verdict)
		}
	}
	t.Logf("%d answers from seed %d: %v", n, first, counts)
}

func fromEnvironment(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(name, err)
	}
	return n
}

// judged is what somebody makes of an answer: allow, deny (whatever the failure
// policy) or fail.
type judged struct {
	verdict string
	patch   string
	err     error
}

// disagree says in which way ours must not differ from kube-apiserver's verdict,
// or "".
func (c *composed) disagree(want, got judged, compat codec.Compatibility) string {
	switch {
	case got.verdict == "allow" && want.verdict != "allow":
		return "allowed where kube-apiserver does not"
	case want.verdict == "deny" && got.verdict != "deny" && !c.hidden:
		return "a denial is lost under Ignore"
	case want.verdict == "allow" && got.verdict != "allow" && !c.limited && (compat == codec.APIServer || !c.plus):
		return "not allowed where kube-apiserver does"
	case want.verdict == "fail" && got.verdict == "deny" && compat == codec.APIServer && !c.limited:
		return "denied whatever the failure policy where kube-apiserver's call fails"
	case want.verdict == "allow" && got.verdict == "allow" && want.patch != got.patch:
		return "another patch"
	}
	return ""
}

// answering is a connection on which an answer follows the first request.
type answering struct {
	net.Conn
	answer  *bytes.Reader
	written chan struct{}
	asked   bool
}

func newAnswering(raw []byte) *answering {
	return &answering{answer: bytes.NewReader(raw), written: make(chan struct{})}
}

func (a *answering) Write(p []byte) (int, error) {
	if !a.asked {
		a.asked = true
		close(a.written)
	}
	return len(p), nil
}

func (a *answering) Read(p []byte) (int, error) {
	<-a.written
	return a.answer.Read(p)
}

func (a *answering) Close() error                     { return nil }
func (a *answering) SetDeadline(time.Time) error      { return nil }
func (a *answering) SetReadDeadline(time.Time) error  { return nil }
func (a *answering) SetWriteDeadline(time.Time) error { return nil }
func (a *answering) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (a *answering) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// reader is our side: a Client, over TLS, to a webhook that answers as is composed.
type reader struct {
	t      *testing.T
	client *transport.Client
	target *transport.Target
	next   []byte // the answer
}

func newReader(t *testing.T) *reader {
	t.Setenv("GODEBUG", "tlsmlkem=0") // keys for each connection would take most of the time
	r, authority := &reader{t: t}, newAuthority(t)
	serverTLS := scripted.Showing(certificateOf(t, authority))
	serverTLS.MaxVersion = tls.VersionTLS12 // in which a session is resumed without keys made anew
	var serving sync.WaitGroup
	r.client = transport.NewClient(transport.ClientConfig{
		ResponseLimit:  composedLimit,
		ConnectTimeout: time.Minute, // however busy the machine is
		Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
			near, far := net.Pipe()
			serving.Go(func() {
				defer far.Close()
				c := tls.Server(far, serverTLS)
				if _, err := c.Read(make([]byte, 4<<10)); err != nil {
					return
				}
				serving.Go(func() { _, _ = io.Copy(io.Discard, c) }) // the caller's goodbye
				_, _ = c.Write(r.next)                               // it may not be read to its end
				_ = c.CloseWrite()
			})
			return near, nil
		},
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(r.client.Close)
	r.target = resolved(t, transport.TargetSpec{
		URL:       "https://" + serviceName + "/check",
		CABundle:  authority.PEM,
		Endpoints: []transport.EndpointSpec{{Address: "10.0.0.1:443"}},
		Breaker:   transport.BreakerSpec{Off: true},
	})
	r.target.Close() // so that it keeps no connection for the next call
	return r
}

// both is a Message whose reply is judged as another Message's, too.
type both struct {
	*Message
	other  *Message
	second transport.Judgment
	judged bool
}

func (b *both) Judge(reply transport.Reply) transport.Judgment {
	b.second, b.judged = b.other.Judge(reply), true
	return b.Message.Judge(reply)
}

// judge returns what an answer is for Strict and for APIServer.
func (r *reader) judge(c *composed) [2]judged {
	review := &codec.Review{Body: codec.NewBody([]byte("{}"), nil), Version: c.version, UID: []byte("u1")}
	v := hook.NewView(hook.Source{Review: review, Mutating: c.mutating})
	defer v.Release()
	codec.ReleaseReview(review)
	message := func(compat codec.Compatibility) *Message {
		return messageTo(r.t, &Hook{Target: r.target, Version: c.version, Compat: compat}, v, codec.Form{Version: c.version})
	}
	m := &both{Message: message(codec.Strict), other: message(codec.APIServer)}
	defer m.other.Release()
	defer m.Release()
	r.next = c.raw
	resp, err := r.client.Call(context.Background(), transport.Call{Target: r.target, Message: m, Deadline: time.Now().Add(time.Minute)})
	first := judgedAs(resp, err)
	if !m.judged { // there was nothing to judge
		return [2]judged{first, first}
	}
	return [2]judged{first, judgedAs(m.second.Response, m.second.Err)}
}

func judgedAs(resp codec.Response, err error) judged {
	var unusable *hook.CallError
	switch {
	case errors.As(err, &unusable):
		return judged{verdict: "fail", err: err}
	case err != nil, !resp.Allowed:
		return judged{verdict: "deny", err: err}
	}
	return judged{verdict: "allow", patch: string(resp.Patch)}
}

// apiServer is kube-apiserver's side: the client that k8s.io/apiserver's
// webhook.ClientManager makes, over scripted connections.
type apiServer struct {
	client *rest.RESTClient
	next   *answering
	scheme *runtime.Scheme
	ctx    context.Context // with a silent logger
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{scheme: runtime.NewScheme(), ctx: klog.NewContext(context.Background(), logr.Discard())}
	for _, add := range []func(*runtime.Scheme) error{admissionv1beta1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(s.scheme); err != nil {
			t.Fatal(err)
		}
	}
	factory := serializer.NewCodecFactory(s.scheme)
	cfg := &rest.Config{Host: "http://w.example.com", APIPath: "/check", QPS: -1, WarningHandler: rest.NoWarnings{}}
	cfg.NegotiatedSerializer = serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{
		Serializer: factory.LegacyCodec(admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion),
	})
	cfg.ContentType = runtime.ContentTypeJSON
	roundTripper := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return s.next, nil },
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(cfg, &http.Client{
		Transport:     roundTripper,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // C11
	})
	if err != nil {
		t.Fatal(err)
	}
	s.client = client
	return s
}

func (s *apiServer) judge(c *composed) judged {
	s.next = newAnswering(c.raw)
	var v1 admissionv1.AdmissionReview
	var beta admissionv1beta1.AdmissionReview
	var into runtime.Object = &v1
	if c.version == codec.V1beta1 {
		into = &beta
	}
	if err := s.client.Post().Body([]byte("{}")).MaxRetries(0).Do(s.ctx).Into(into); err != nil {
		return judged{verdict: "fail", err: err}
	}
	r, patchType, err := verifyAdmissionResponse(c.mutating, &v1)
	if c.version == codec.V1beta1 {
		r, patchType, err = convertBeta(c.mutating, &beta)
	}
	switch {
	case err != nil:
		return judged{verdict: "fail", err: err}
	case !r.Allowed:
		return judged{verdict: "deny"}
	case !c.mutating || len(r.Patch) == 0:
		return judged{verdict: "allow"}
	}
	// What the mutating dispatcher does before it applies the patch.
	operations, err := jsonpatch.DecodePatch(r.Patch)
	switch {
	case err != nil:
		return judged{verdict: "fail", err: err}
	case len(operations) == 0:
		return judged{verdict: "allow"}
	case patchType != admissionv1.PatchTypeJSONPatch:
		return judged{verdict: "fail", err: errors.New("patch type")}
	}
	return judged{verdict: "allow", patch: string(r.Patch)}
}

// verifyAdmissionResponse is request.VerifyAdmissionResponse of k8s.io/apiserver
// for v1, whose package needs more modules than ours has.
func verifyAdmissionResponse(mutating bool, review *admissionv1.AdmissionReview) (r *admissionv1.AdmissionResponse, patchType admissionv1.PatchType, err error) {
	r = review.Response
	switch {
	case r == nil:
		return nil, "", errors.New("webhook response was absent")
	case r.UID != "u1":
		return nil, "", errors.New("uid")
	case review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"):
		return nil, "", errors.New("kind")
	case mutating && len(r.Patch) > 0 && r.PatchType == nil, mutating && len(r.Patch) == 0 && r.PatchType != nil:
		return nil, "", errors.New("patch or type alone")
	case mutating && r.PatchType != nil && *r.PatchType == "":
		return nil, "", errors.New("empty type")
	case !mutating && (len(r.Patch) > 0 || r.PatchType != nil):
		return nil, "", errors.New("validating webhook may not return a patch")
	}
	if r.PatchType != nil {
		patchType = *r.PatchType
	}
	return r, patchType, nil
}

// convertBeta is its part for v1beta1.
func convertBeta(mutating bool, review *admissionv1beta1.AdmissionReview) (*admissionv1.AdmissionResponse, admissionv1.PatchType, error) {
	if review.Response == nil {
		return nil, "", errors.New("webhook response was absent")
	}
	r := &admissionv1.AdmissionResponse{Allowed: review.Response.Allowed}
	if mutating {
		r.Patch = review.Response.Patch
	}
	return r, admissionv1.PatchTypeJSONPatch, nil
}

// composed is an answer that was composed at random.
type composed struct {
	raw      []byte
	version  codec.Version
	mutating bool
	plus     bool // it has what only Strict refuses: a row marked +
	limited  bool // it is over a limit of ours, which every compatibility has
	hidden   bool // and what denies in it is behind that, or not in plain text
}

// composer composes one answer.
type composer struct {
	*rand.Rand
	*composed
}

func compose(seed uint64, server *apiServer) *composed {
	c := composer{rand.New(rand.NewPCG(seed, 0)), &composed{version: codec.V1}}
	c.mutating = c.maybe(40)
	if c.maybe(25) {
		c.version = codec.V1beta1
	}
	body := []byte(c.review())
	switch {
	case c.maybe(4):
		body = c.protobuf(server, body)
	case c.maybe(8):
		body = c.yaml(body)
	default:
		body = c.formality(body)
	}
	c.raw = c.http(body)
	c.hidden = c.hidden || c.limited && !isPlain(body)
	return c.composed
}

// isPlain reports whether a body says in plain text that it denies.
func isPlain(body []byte) bool {
	text := strings.Join(strings.Fields(string(body)), "")
	return strings.Contains(text, `"allowed":false`) || strings.Contains(text, "allowed:false") || strings.Contains(text, "allowed:False")
}

// maybe is true in so many of a hundred cases.
func (c composer) maybe(percent int) bool { return c.IntN(100) < percent }

// rarely is for what would otherwise be in nearly every answer.
func (c composer) rarely() bool { return c.IntN(150) == 0 }

func (c composer) one(of ...string) string { return of[c.IntN(len(of))] }

// member is a member of an object, absent if its value is empty.
type member struct{ key, value string }

// object writes members in any order, perhaps with one twice or in another case.
func (c composer) object(members ...member) string {
	all := make([]member, 0, len(members)+1)
	for _, m := range members {
		if m.value != "" {
			all = append(all, m)
		}
	}
	if c.maybe(25) {
		c.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range all {
		if i > 0 {
			b.WriteString(c.one(",", ",", ", ", ",\n"))
		}
		b.WriteString(c.key(m.key) + c.one(":", ":", ": ", "\t:\r\n") + m.value)
		if c.rarely() {
			c.plus = true
			b.WriteString("," + c.key(m.key) + ":" + c.one(m.value, "null", "true", "false", `"u1"`, "{}", "1"))
		}
		if c.rarely() {
			c.plus = true
			b.WriteString("," + strconv.Quote(c.cased(m.key)) + ":" + c.one(m.value, "null", "true", "false", `"Status"`, "1"))
		}
	}
	b.WriteByte('}')
	return b.String()
}

func (c composer) key(name string) string {
	switch {
	case c.rarely():
		return fmt.Sprintf(`"\u%04x%s"`, name[0], name[1:])
	case c.rarely():
		c.plus = true
		return strconv.Quote(c.cased(name))
	case c.rarely():
		c.plus = c.plus || c.version == codec.V1beta1 // uid and kind may be missing
		return `"other"`
	}
	return strconv.Quote(name)
}

func (c composer) cased(name string) string {
	return c.one(strings.ToUpper(name[:1])+name[1:], strings.ToUpper(name), strings.ReplaceAll(name, "s", "\u017f"))
}

// any is a value of whatever type.
func (c composer) any() string {
	return c.one("null", "true", "false", "0", "1", "-1", "1.5", "1e3", `""`, `"x"`, "[]", "{}", `["a"]`, `{"a":"b"}`, "[null]", "99999999999", `[{"a":1}]`)
}

// mostly is value, or rarely one of another type.
func (c composer) mostly(value string) string {
	if c.rarely() {
		return c.any()
	}
	return value
}

// optional is value in so many of a hundred cases.
func (c composer) optional(percent int, value string) string {
	if !c.maybe(percent) {
		return ""
	}
	return c.mostly(value)
}

// text is a string, perhaps with something that not every reader takes.
func (c composer) text() string {
	if c.maybe(85) {
		return `"` + c.one("no", "", `a \"quoted\" word`, `line\nline\r\nline`, `\u00e9\ud83d\ude00`, `{\"allowed\":false}`, `{\"allowed\":true}`, "é", strings.Repeat("x", c.IntN(300))) + `"`
	}
	c.plus = true
	return c.one(`"\ud800"`, `"\ude00x"`, `"\ud83d\u0041"`, "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"")
}

func (c composer) review() string {
	version := c.version.APIVersion()
	kind := c.mostly(`"AdmissionReview"`)
	apiVersion := c.mostly(strconv.Quote(version))
	if c.rarely() {
		kind = c.one("", `"Status"`, `""`, `"admissionReview"`)
	}
	if c.rarely() {
		apiVersion = c.one("", `"v1"`, `"admission.k8s.io/v1"`, `"admission.k8s.io/v1beta1"`, `"admission.k8s.io/v9"`, `""`, `"a/b/c"`, `"/"`, `"admission.k8s.io/"`)
	}
	if c.version == codec.V1beta1 && (kind != `"AdmissionReview"` || apiVersion != strconv.Quote(version)) {
		c.plus = true
	}
	return c.object(
		member{"kind", kind},
		member{"apiVersion", apiVersion},
		member{"request", c.optional(8, c.request())},
		member{"response", c.mostly(c.response())},
		member{"extra", c.optional(3, c.any())},
	)
}

func (c composer) response() string {
	uid := c.mostly(`"u1"`)
	if c.rarely() {
		uid = c.one("", `"u2"`, `""`, `"U1"`)
	}
	if c.version == codec.V1beta1 && uid != `"u1"` {
		c.plus = true
	}
	allowed := c.one("true", "true", "true", "false", "false", "false", "false", "null", "")
	if c.rarely() {
		allowed = c.any()
	}
	patch, patchType := c.patch()
	return c.object(
		member{"uid", uid},
		member{"allowed", allowed},
		member{"status", c.optional(50, c.status())},
		member{"patch", patch},
		member{"patchType", patchType},
		member{"warnings", c.optional(10, c.one("["+c.text()+"]", "[]", "null", "["+c.any()+"]"))},
		member{"auditAnnotations", c.optional(10, c.one(`{"a":`+c.text()+"}", "{}", "null", `{"a":`+c.any()+"}"))},
	)
}

func (c composer) patch() (patch, patchType string) {
	if c.mutating != c.maybe(90) {
		patch = c.optional(2, `""`)
		c.plus = c.plus || c.version == codec.V1beta1 && !c.mutating && patch == "[null]" // a byte, which is a patch
		return patch, c.optional(1, "null")
	}
	operations := c.one(`[{"op":"add","path":"/a","value":1}]`, `[{"op":"add","path":"/a","value":1}]`, "[]", "null", "[null]", "[1]", "{}", "[", `[{"op":"x"}] x`, "", " ", "[{}]")
	if c.version == codec.V1beta1 && !c.mutating {
		c.plus = true
	}
	if c.rarely() {
		return c.one("[91,93]", "[256]", "[null,1]", "[]"), `"JSONPatch"`
	}
	patch = c.mostly(strconv.Quote(base64.StdEncoding.EncodeToString([]byte(operations))))
	return c.one(patch, patch, patch, patch, `"!"`, "", "null"), c.mostly(c.one(`"JSONPatch"`, `"JSONPatch"`, `"JSONPatch"`, `"JSONPatch"`, `"MergePatch"`, `""`, "", "null"))
}

func (c composer) status() string {
	return c.object(
		member{"kind", c.optional(5, `"Status"`)},
		member{"apiVersion", c.optional(5, `"v1"`)},
		member{"metadata", c.optional(20, c.object(member{"continue", c.optional(10, `"x"`)}, member{"remainingItemCount", c.optional(10, c.one("1", "-5", "9223372036854775808", "1.0"))}))},
		member{"status", c.optional(20, c.one(`"Failure"`, `"Success"`))},
		member{"message", c.optional(70, c.text())},
		member{"reason", c.optional(20, c.text())},
		member{"code", c.optional(60, c.one("403", "403", "422", "0", "-1", "200", "600", "2147483647", "-0", "null"))},
		member{"details", c.optional(20, c.object(
			member{"name", c.optional(20, `"n"`)},
			member{"group", c.optional(5, `"g"`)},
			member{"kind", c.optional(5, `"k"`)},
			member{"uid", c.optional(5, `"u"`)},
			member{"causes", c.optional(30, "["+c.object(member{"reason", c.optional(50, c.text())}, member{"message", c.optional(50, c.text())}, member{"field", c.optional(20, `"f"`)})+"]")},
			member{"retryAfterSeconds", c.optional(20, c.one("1", "30", "1000000000", "-1"))},
		))},
	)
}

func (c composer) request() string {
	return c.object(
		member{"uid", c.mostly(`"u1"`)},
		member{"kind", c.optional(50, `{"group":"","version":"v1","kind":"Pod"}`)},
		member{"operation", c.optional(50, `"CREATE"`)},
		member{"userInfo", c.optional(50, c.object(member{"username", c.optional(50, `"u"`)}, member{"groups", c.optional(50, `["a",null]`)}, member{"extra", c.optional(50, `{"a":["b"],"c":null}`)}))},
		member{"object", c.optional(50, c.any())},
		member{"dryRun", c.optional(50, c.one("true", "null"))},
	)
}

// formality breaks JSON, or only spaces it.
func (c composer) formality(body []byte) []byte {
	switch c.IntN(60) {
	case 0:
		return append(body, c.one("x", "{}", "//", "\x00", "]", "\ufeff")...)
	case 1:
		return append([]byte(c.one("\ufeff", "//\n", "# c\n", "---\n", "/* */", "\u00a0", ")]}',\n")), body...)
	case 2:
		return body[:c.IntN(len(body)+1)]
	case 3:
		c.plus = true // it may be in an escape, or in a key
		i := c.IntN(len(body) + 1)
		return append(body[:i:i], append([]byte(c.one(",", "NaN", "/**/", "\x01", "\"", "\xff", "}", " ")), body[i:]...)...)
	case 4:
		return []byte(c.one("", " ", "null", "[]", "true", `"x"`, "<html></html>", "Unauthorized", `{"kind":"Status","apiVersion":"v1","status":"Success"}`, "allowed: false"))
	case 5:
		return append([]byte(c.one(" ", "\n", "\t\r\n")), body...)
	case 6:
		return append(body, c.one(" ", "\n\n", "\r\n\t")...)
	case 7: // over the limit: the verdict is in front, or hidden behind it
		c.limited = true
		padding := bytes.Repeat([]byte(" "), composedLimit)
		if c.maybe(50) {
			return append(body, padding...)
		}
		c.hidden = true
		return append(padding, body...)
	}
	return body
}

// yaml is body in YAML, if it can be.
func (c composer) yaml(body []byte) []byte {
	text, err := yaml.JSONToYAML(body)
	switch {
	case err != nil:
		return body
	case c.maybe(10):
		c.plus = true
		return append(text, c.one("response: null\n", "response: {uid: u1, allowed: true}\n", "kind: AdmissionReview\n")...)
	case bytes.IndexByte(text, '&') >= 0 && bytes.IndexByte(text, '*') >= 0:
		c.limited = true
	}
	return bytes.ReplaceAll(text, []byte("allowed: false"), []byte("allowed: "+c.one("false", "no", "off", "False")))
}

// protobuf is what kube-apiserver reads in body, in protobuf, if anything.
func (c composer) protobuf(s *apiServer, body []byte) []byte {
	decoder := serializer.NewCodecFactory(s.scheme).LegacyCodec(admissionv1.SchemeGroupVersion)
	review := &admissionv1.AdmissionReview{}
	if _, _, err := decoder.Decode(body, nil, review); err != nil || c.version != codec.V1 {
		return body
	}
	if c.maybe(90) {
		review.TypeMeta = metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}
	} else {
		c.plus = true
	}
	var b bytes.Buffer
	if err := protobuf.NewSerializer(s.scheme, s.scheme).Encode(review, &b); err != nil {
		return body
	}
	text := b.Bytes()
	if c.rarely() {
		text = text[:c.IntN(len(text))]
	}
	return text
}

// http is the whole answer.
func (c composer) http(body []byte) []byte {
	status := c.one("200 OK", "200 OK", "200 OK", "200 OK", "200 OK", "200 OK", "200 OK", "200 OK")
	if c.maybe(10) {
		status = c.one("200", "200 ", "201 Created", "202 Accepted", "203 x", "204 No Content", "205 Reset Content", "206 Partial Content", "207 Multi-Status", "299 x",
			"300 x", "301 x", "304 Not Modified", "307 x", "308 x", "400 Bad Request", "404 x", "429 x", "500 x", "503 x", "600 x")
	}
	var head strings.Builder
	head.WriteString(c.one("HTTP/1.1 ", "HTTP/1.1 ", "HTTP/1.1 ", "HTTP/1.0 ") + status + "\r\n")
	if c.maybe(90) {
		kind := "application/json"
		if c.maybe(25) {
			kind = c.one("text/html", "text/html; charset=utf-8", "text/plain", "application/octet-stream", "application/yaml", "application/vnd.kubernetes.protobuf",
				"application/x-www-form-urlencoded", "application/json; charset=latin1", "json", "", "image/png")
			if c.maybe(20) {
				kind = c.one("application/json; ;", ";", "a/b/c", "application/json; charset", "application json")
			}
		}
		head.WriteString(c.one("Content-Type: ", "content-type:", "CONTENT-TYPE:  ") + kind + "\r\n")
	}
	if c.maybe(6) {
		coding := c.one("gzip", "gzip", "GZIP", "zstd", "identity", "br", "utf-8", "x-gzip")
		head.WriteString("Content-Encoding: " + coding + "\r\n")
		switch c.IntN(3) {
		case 0:
			body = codec.AppendCompressed(nil, codec.Gzip, body)
		case 1:
			body = codec.AppendCompressed(nil, codec.Zstd, body)
		}
		if len(body) > 2 && c.rarely() {
			body = body[:c.IntN(len(body))]
		}
	}
	if c.maybe(20) {
		head.WriteString(c.one("Set-Cookie: a=b", "X-Empty:", "Location: https://x.example.com/", "Server: allowed: false", "Date: x", "Warning: 299 - \"x\"", "Accept-Post: application/json") + "\r\n")
	}
	switch c.IntN(200) {
	case 0: // within our limit, beyond the usual buffers
		head.WriteString(strings.Repeat("X-Long: "+strings.Repeat("x", 100)+"\r\n", 200+c.IntN(300)))
	case 1:
		c.limited = true
		head.WriteString(strings.Repeat("X-Long: "+strings.Repeat("x", 100)+"\r\n", 620))
	}
	return append([]byte(head.String()), c.framed(body)...)
}

// framed is the end of the head and the body: with a length, in chunks, or to the
// end of the connection.
func (c composer) framed(body []byte) []byte {
	var b bytes.Buffer
	switch c.IntN(6) {
	case 0:
		b.WriteString("Connection: close\r\n\r\n")
		b.Write(body)
	case 1:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for len(body) > 0 {
			n := min(len(body), 1+c.IntN(2000))
			_, _ = fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		_, _ = io.WriteString(&b, c.one("0\r\n\r\n", "0\r\n\r\n", "0\r\nX-Trailer: x\r\n\r\n"))
	default:
		_, _ = fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(body))
		b.Write(body)
	}
	if c.rarely() {
		c.plus = c.plus || c.version == codec.V1beta1 // YAML that is cut in its uid is whole
		b.Truncate(max(0, b.Len()-1-c.IntN(3)))
	}
	return b.Bytes()
}
