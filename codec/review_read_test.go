// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

func TestDecodeFillsTheReview(t *testing.T) {
	r := mustDecode(t, swap(t, `"username":"ann"`, `"username":"a\u006en \u00e9\uD83D\uDE00\"\\\/\b\f\n\r\t"`))
	got := map[string]string{
		"version": r.Version.String(), "uid": string(r.UID), "operation": r.Operation.String(),
		"kind": fmt.Sprintf("%s", r.Kind), "requestKind": fmt.Sprintf("%s", r.RequestKind),
		"resource": fmt.Sprintf("%s", r.Resource), "requestResource": fmt.Sprintf("%s", r.RequestResource),
		"name": string(r.Name), "namespace": string(r.Namespace), "user": string(r.User.Username), "userUID": string(r.User.UID),
		"groups": fmt.Sprintf("%s", r.User.Groups), "extra": fmt.Sprintf("%s", r.User.Extra),
		"object":  fmt.Sprintf("%s %s %s %s %s", r.Object.APIVersion, r.Object.Kind, r.Object.Name, r.Object.Namespace, r.Object.UID),
		"labels":  fmt.Sprintf("%s", r.Object.Labels),
		"options": string(r.Options),
		"flags":   fmt.Sprint(r.HasRequestResource, r.DryRun, r.Object.IsNull(), r.OldObject.IsNull(), r.Object.HasMetadata()),
	}
	want := map[string]string{
		"version": "v1", "uid": "0f7c9d0e", "operation": "CREATE",
		"kind": "{ v1 Pod}", "requestKind": "{ v1 Pod}", "resource": "{ v1 pods}", "requestResource": "{ v1 pods}",
		"name": "web", "namespace": "shop", "user": "ann \u00e9\U0001F600\"\\/\b\f\n\r\t", "userUID": "7",
		"groups": "[dev system:authenticated]", "extra": "[{scopes [a b]}]",
		"object": "v1 Pod web shop o1", "labels": "[{app web} {tier front}]",
		"options": `{"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}`,
		"flags":   "true false false true true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestUnreadableEnvelope has the rows for which there is no uid to answer to.
func TestUnreadableEnvelope(t *testing.T) {
	plain := plainReview().json()
	withUID := func(uid string) string { return swap(t, `"uid":"0f7c9d0e"`, `"uid":`+uid) }
	tests := []struct{ name, body, pointer string }{
		{"B1 empty", "", ""},
		{"B1 white space", " \n", ""},
		{"B1 null", "null", ""},
		{"B1 array", "[]", ""},
		{"B1 truncated", plain[:len(plain)-1], ""},
		{"B1 truncated in a string", plain[:strings.Index(plain, "shop")], ""},
		{"B2 byte order mark", "\uFEFF" + plain, ""},
		{"B2 comment", "/* x */" + plain, ""},
		{"B2 trailing comma in the envelope", swap(t, `{"apiVersion"`, `{"x":[1,],"apiVersion"`), ""},
		{"B2 trailing comma deep inside", swap(t, `"containers":[`, `"x":{"a":1,},"containers":[`), ""},
		{"B2 NaN", swap(t, `"containers":[`, `"x":NaN,"containers":[`), ""},
		{"B2 leading zero", swap(t, `"containers":[`, `"x":01,"containers":[`), ""},
		{"B2 minus leading zero", swap(t, `"containers":[`, `"x":-01,"containers":[`), ""},
		{"B2 bare minus", swap(t, `"containers":[`, `"x":-,"containers":[`), ""},
		{"B2 fraction without digits", swap(t, `"containers":[`, `"x":1.,"containers":[`), ""},
		{"B2 exponent without digits", swap(t, `"containers":[`, `"x":1e+,"containers":[`), ""},
		{"B2 literal in capitals", swap(t, `"dryRun":false`, `"dryRun":FALSE`), ""},
		{"B2 key without quotes", swap(t, `"containers":[`, `x:1,"containers":[`), ""},
		{"B2 control character in a string", swap(t, `registry/web`, "registry/\tweb"), ""},
		{"B2 unknown escape", swap(t, `registry/web`, `registry/\xweb`), ""},
		{"B2 mismatched brackets", swap(t, `"containers":[`, `"x":[1},"containers":[`), ""},
		{"B2 trailing bytes", plain + "x", ""},
		{"B2 trailing zero byte", plain + "\x00", ""},
		{"B2 second document", plain + plain, ""},
		{"B3 duplicate key in the envelope", `{"kind":"AdmissionReview",` + plain[1:], "/kind"},
		{"B3 duplicate key in request", swap(t, `"request":{`, `"request":{"uid":"other",`), "/request/uid"},
		{"B3 duplicate key in request, escaped", swap(t, `"request":{`, `"request":{"\u0075id":"other",`), "/request/uid"},
		{"B4 case variant alone", strings.Replace(plain, `"request":`, `"REQUEST":`, 1), "/REQUEST"},
		{"B7 kind other", strings.Replace(plain, `"AdmissionReview"`, `"Status"`, 1), "/kind"},
		{"B7 kind absent", strings.Replace(plain, `"kind":"AdmissionReview",`, ``, 1), "/kind"},
		{"B7 kind not a string", strings.Replace(plain, `"AdmissionReview"`, `1`, 1), "/kind"},
		{"B7 group other", strings.Replace(plain, `admission.k8s.io/v1`, `admission.example.com/v1`, 1), "/apiVersion"},
		{"B7 version unknown", strings.Replace(plain, `admission.k8s.io/v1`, `admission.k8s.io/v2`, 1), "/apiVersion"},
		{"B7 version absent", strings.Replace(plain, `"apiVersion":"admission.k8s.io/v1",`, ``, 1), "/apiVersion"},
		{"B9 request null", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}`, "/request"},
		{"B9 request absent", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, "/request"},
		{"B9 request an array", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":[]}`, "/request"},
		{"B9 uid absent", plainReview().without("uid").json(), "/request/uid"},
		{"B9 uid null", withUID(`null`), "/request/uid"},
		{"B9 uid empty", withUID(`""`), "/request/uid"},
		{"B9 uid a number", withUID(`7`), "/request/uid"},
		{"B9 uid of 129 bytes", withUID(`"` + strings.Repeat("a", 129) + `"`), "/request/uid"},
		{"B9 uid with a control character", withUID(`"a\n"`), "/request/uid"},
		{"B9 uid with DEL", withUID("\"a\x7f\""), "/request/uid"},
		{"B9 uid with a control character above ASCII", withUID(`"a\u0085"`), "/request/uid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decode(t, tt.body)
			var bad *codec.EnvelopeError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want an EnvelopeError", err)
			}
			if syntax := strings.Contains(bad.Reason, "not strict JSON"); bad.Pointer+bad.Member != tt.pointer && !syntax {
				t.Errorf("got %q, want the pointer %q", bad.Detail(), tt.pointer)
			}
		})
	}
}

// TestRequestThatCannotBeJudged has the rows that are denied with code 400.
func TestRequestThatCannotBeJudged(t *testing.T) {
	plain := plainReview().json()
	object := func(s string) string { return plainReview().with("object", raw(s)).json() }
	metadata := func(s string) string { return object(`{"metadata":` + s + `}`) }
	nested := func(depth int) string {
		depth -= 3                                                       // envelope, request, object
		value := strings.Repeat("[", depth) + strings.Repeat("]", depth) // deeper than encoding/json goes
		return strings.Replace(object(`{"a":0}`), `{"a":0}`, `{"a":`+value+`}`, 1)
	}
	tests := []struct{ name, body, pointer string }{
		{"B10 operation absent", plainReview().without("operation").json(), "/request/operation"},
		{"B10 operation null", plainReview().with("operation", nil).json(), "/request/operation"},
		{"B10 operation unknown", plainReview().with("operation", "PATCH").json(), "/request/operation"},
		{"B10 operation in lower case", plainReview().with("operation", "create").json(), "/request/operation"},
		{"B10 operation a number", plainReview().with("operation", 1).json(), "/request/operation"},
		{"B10 resource absent", plainReview().without("resource").json(), "/request/resource"},
		{"B10 resource null", plainReview().with("resource", nil).json(), "/request/resource"},
		{"B10 resource empty", plainReview().with("resource", raw(`{}`)).json(), "/request/resource"},
		{"B10 resource a string", plainReview().with("resource", "pods").json(), "/request/resource"},
		{"B13 object a string", object(`"x"`), "/request/object"},
		{"B13 object an array", object(`[]`), "/request/object"},
		{"B13 old object a number", plainReview().with("oldObject", 1).json(), "/request/oldObject"},
		{"B13 metadata an array", object(`{"metadata":[]}`), "/request/object/metadata"},
		{"B13 labels an array", object(`{"metadata":{"labels":[]}}`), "/request/object/metadata/labels"},
		{"B13 label a number", object(`{"metadata":{"labels":{"a":1}}}`), "/request/object/metadata/labels"},
		{"B13 label null", object(`{"metadata":{"labels":{"a":null}}}`), "/request/object/metadata/labels"},
		{"B13 name a number", object(`{"metadata":{"name":1}}`), "/request/object/metadata/name"},
		{"B13 kind an object", object(`{"kind":{}}`), "/request/object/kind"},
		{"B13 options an array", plainReview().with("options", raw(`[]`)).json(), "/request/options"},
		{"dryRun a string", plainReview().with("dryRun", "true").json(), "/request/dryRun"},
		{"username a number", plainReview().with("userInfo", raw(`{"username":1}`)).json(), "/request/userInfo/username"},
		{"userInfo an array", plainReview().with("userInfo", raw(`[]`)).json(), "/request/userInfo"},
		{"group a number", plainReview().with("userInfo", raw(`{"groups":["a",1,"b"]}`)).json(), "/request/userInfo/groups"},
		{"groups a string", plainReview().with("userInfo", raw(`{"groups":"a"}`)).json(), "/request/userInfo/groups"},
		{"extra a string", plainReview().with("userInfo", raw(`{"extra":{"a":"b"}}`)).json(), "/request/userInfo/extra"},
		{"B3 duplicate unknown key in the envelope", `{"x":1,"x":2,` + plain[1:], "/x"},
		{"B3 duplicate response", `{"response":{},"response":{},` + plain[1:], "/response"},
		{"B3 duplicate unknown key in request", swap(t, `"request":{`, `"request":{"x~/":1,"x~/":1,`), "/request/x~0~1"},
		{"B3 duplicate key in kind", swap(t, `"kind":{`, `"kind":{"kind":"Node",`), "/request/kind/kind"},
		{"B3 duplicate key in resource", swap(t, `"resource":{`, `"resource":{"version":"v2",`), "/request/resource/version"},
		{"B3 duplicate key in userInfo", swap(t, `"userInfo":{`, `"userInfo":{"username":"eve",`), "/request/userInfo/username"},
		{"B3 duplicate key in extra", swap(t, `"extra":{`, `"extra":{"scop\u0065s":[],`), "/request/userInfo/extra/scopes"},
		{"B3 duplicate metadata", swap(t, `"metadata":{`, `"metadata":{},"metadata":{`), "/request/object/metadata"},
		{"B3 duplicate apiVersion of the object", plainReview().with("object", raw(`{"apiVersion":"v1","apiVersion":"v2"}`)).json(), "/request/object/apiVersion"},
		{"B3 duplicate kind of the old object", plainReview().with("oldObject", raw(`{"kind":"Pod","kind":"Node"}`)).json(), "/request/oldObject/kind"},
		{"B3 duplicate key in metadata", metadata(`{"name":"a","name":"b"}`), "/request/object/metadata/name"},
		{"B3 duplicate annotations in metadata", metadata(`{"annotations":{},"annotations":{}}`), "/request/object/metadata/annotations"},
		{"B3 duplicate label", metadata(`{"labels":{"app":"a","app":"b"}}`), "/request/object/metadata/labels/app"},
		{"B3 duplicate label with a slash", metadata(`{"labels":{"x.io/app":"a","x.io/app":"b"}}`), "/request/object/metadata/labels/x.io~1app"},
		{"B3 duplicate label that is not printable", metadata(`{"labels":{"a\n":"a","a\n":"b"}}`), "/request/object/metadata/labels"},
		{"B3 duplicate label among many", metadata(`{"labels":` + manyLabels(100, `,"key50":""`) + `}`), "/request/object/metadata/labels/key50"},
		{"B3 duplicate label that is no string", metadata(`{"labels":{"app":1,"app":"b"}}`), "/request/object/metadata/labels/app"},
		{"B4 case variant in the envelope", `{"Request":{},` + plain[1:], "/Request"},
		{"B4 long s", `{"reque\u017ft":{},` + plain[1:], "/reque\u017ft"},
		{"B4 long s, not escaped", "{\"reque\u017ft\":{}," + plain[1:], "/reque\u017ft"},
		{"B4 Kelvin sign", "{\"\u212Aind\":{}," + plain[1:], "/\u212Aind"},
		{"B4 case variant of response", `{"Response":{},` + plain[1:], "/Response"},
		{"B4 case variant in request", swap(t, `"request":{`, `"request":{"UID":"other",`), "/request/UID"},
		{"B4 case variant in resource", swap(t, `"resource":{`, `"resource":{"Resource":"nodes",`), "/request/resource/Resource"},
		{"B4 case variant in userInfo", swap(t, `"userInfo":{`, `"userInfo":{"Groups":[],`), "/request/userInfo/Groups"},
		{"B4 case variant in the object", plainReview().with("object", raw(`{"Metadata":{}}`)).json(), "/request/object/Metadata"},
		{"B4 case variant in metadata", metadata(`{"Labels":{}}`), "/request/object/metadata/Labels"},
		{"B5 invalid UTF-8 in a key", `{"` + "\xff" + `":1,` + plain[1:], ""},
		{"B5 lone surrogate escape in a label", metadata(`{"labels":{"a\ud800":""}}`), "/request/object/metadata/labels"},
		{"B6 nesting 10,001", nested(10_001), "/request/object"},
		{"B6 nesting 10,001 in an unknown field", `{"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `,` + plain[1:], ""},
		{"B3 duplicate case variant of uid", swap(t, `"request":{`, `"request":{"Uid":"other",`), "/request/Uid"},
		{"B3 duplicate behind the uid, in front of the kind", `{"request":{"uid":"0f7c9d0e","x":1,"x":2},"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "/request/x"},
		{"B5 invalid UTF-8 in a name", swap(t, `"name":"web","namespace":"shop","object"`, "\"name\":\"\xff\",\"namespace\":\"shop\",\"object\""), ""},
		{"B5 invalid UTF-8 in userInfo", swap(t, `"ann"`, "\"\xff\""), ""},
		{"B5 lone surrogate escape in userInfo", swap(t, `"ann"`, `"\udc00"`), "/request/userInfo/username"},
		{"B5 invalid UTF-8 in a label", metadata("{\"labels\":{\"a\":\"\xff\"}}"), ""},
		{"B5 invalid UTF-8 in an annotation", metadata("{\"annotations\":{\"a\":\"\xff\"}}"), ""},
		{"B5 lone surrogate escape in a key at the root of the object", object(`{"a\ud800":1}`), "/request/object"},
		{"B5 invalid UTF-8 in a key at the root of the object", object("{\"Kind\xff\":1}"), ""},
		{"B5 invalid UTF-8 behind one that is not ours", swap(t, `"spec":`, "\"status\":\"\xff\",\"\xff\":1,\"spec\":"), ""},
		{"B6 nesting 60,000", nested(60_000), "/request/object"},
		{"the first of two", plainReview().with("userInfo", 1).without("operation").json(), "/request/userInfo"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := decode(t, tt.body)
			var bad *codec.RequestError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want a RequestError", err)
			}
			if bad.Pointer+bad.Member != tt.pointer {
				t.Errorf("got %q, want the pointer %q", bad.Detail(), tt.pointer)
			}
			if r.Version != codec.V1 || string(r.UID) != "0f7c9d0e" {
				t.Errorf("got version %v and uid %q: there is nothing to answer to", r.Version, r.UID)
			}
		})
	}
	t.Run("an unreadable envelope outweighs it", func(t *testing.T) {
		body := `{"request":{"operation":7,"object":7,"uid":"u"},"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v3"}`
		_, err := decode(t, body)
		if bad := (*codec.EnvelopeError)(nil); !errors.As(err, &bad) {
			t.Errorf("got %v, want an EnvelopeError", err)
		}
	})
	t.Run("whatever the order of the keys", func(t *testing.T) {
		r, err := decode(t, `{"request":{"operation":7,"uid":"u"},"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}`)
		if bad := (*codec.RequestError)(nil); !errors.As(err, &bad) || r.Version != codec.V1beta1 || string(r.UID) != "u" {
			t.Errorf("got %v with version %v and uid %q", err, r.Version, r.UID)
		}
	})
}

func manyLabels(n int, more string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"key%d":"v%d"`, (i*7919)%n, i)
	}
	return b.String() + more + "}"
}

// TestForeignStrings: what the API server passes on as its users wrote it, such as the
// parameters of a ResourceClaim, gets to the webhooks byte by byte.
func TestForeignStrings(t *testing.T) {
	for name, text := range map[string]string{
		"invalid UTF-8":              "registry/\xc3web",
		"UTF-8 of a surrogate":       "\xed\xa0\x80",
		"lone high surrogate escape": `\ud800x`,
		"lone low surrogate escape":  `\udc00`,
		"two high surrogate escapes": `\ud800\ud800`,
		"far behind the beginning":   strings.Repeat("x", 200) + `\n\ud800\u00e9` + strings.Repeat(`\t`, 70) + "\xff",
	} {
		t.Run("B5 "+name, func(t *testing.T) {
			body := swap(t, `registry/web`, text)
			if r := mustDecode(t, body); string(r.Body.Bytes()) != body || string(r.Object.Name) != "web" {
				t.Errorf("the name is %q, forwarded is %q", r.Object.Name, r.Body.Bytes())
			}
			old := plainReview().with("oldObject", nil).json()
			old = strings.Replace(old, `"oldObject":null`, `"oldObject":{"data":"`+text+`","metadata":{"name":"é"}}`, 1)
			if r := mustDecode(t, old); string(r.OldObject.Name) != "é" {
				t.Errorf("the old name is %q", r.OldObject.Name)
			}
		})
	}
	t.Run("B5 it is JSON all the same", func(t *testing.T) {
		for _, text := range []string{"registry/\tweb", `\xff`, `\ud8zz`, `\ud800\`} {
			var bad *codec.EnvelopeError
			if _, err := decode(t, swap(t, `registry/web`, text)); !errors.As(err, &bad) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

// TestDecodeHead: where the rest of a body will not be read, its beginning says whom
// to answer.
func TestDecodeHead(t *testing.T) {
	plain := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","object":{"metadata":{"name":"web"}}}}`
	uidEnd := strings.Index(plain, `"u"`) + len(`"u"`)
	head := func(body string, e codec.Encoding) (*codec.Review, bool) {
		b := codec.NewBody([]byte(body), func(data []byte) { clear(data) })
		defer b.Release()
		r := codec.AcquireReview()
		t.Cleanup(func() { codec.ReleaseReview(r) })
		return r, r.DecodeHead(b, e)
	}
	for n := range len(plain) + 1 {
		r, ok := head(plain[:n], codec.JSON)
		if want := n >= uidEnd; ok != want {
			t.Errorf("A14 %d bytes: %v", n, ok)
		}
		if ok && (r.Version != codec.V1beta1 || string(r.UID) != "u") {
			t.Errorf("A14 %d bytes: version %v and uid %q", n, r.Version, r.UID)
		}
	}
	inProto := string(asProtobuf(t, kubernetesProtobuf(t), plainReview().json()))
	uidEnd = strings.Index(inProto, "0f7c9d0e") + len("0f7c9d0e")
	for n := range len(inProto) + 1 {
		r, ok := head(inProto[:n], codec.Protobuf)
		if want := n >= uidEnd; ok != want {
			t.Errorf("A14 %d bytes of protobuf: %v", n, ok)
		}
		if ok && (r.Version != codec.V1 || string(r.UID) != "0f7c9d0e") {
			t.Errorf("A14 %d bytes of protobuf: version %v and uid %q", n, r.Version, r.UID)
		}
	}
	for name, body := range map[string]string{
		"two kinds":             `{"kind":"AdmissionReview","kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`,
		"another kind":          `{"kind":"Review","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`,
		"another kind first":    `{"kind":"Review","kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`,
		"another version first": `{"kind":"AdmissionReview","apiVersion":"v1","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`,
		"two versions":          `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`,
		"no version":            `{"kind":"AdmissionReview","request":{"uid":"u",`,
		"uid deeper":            `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"object":{"uid":"u"},`,
		"uid no Unicode":        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":\"\xff\",",
		"uid a control":         `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"\u0000",`,
		"not JSON":              `{"x":01,"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`,
		"empty":                 ``,
	} {
		if r, ok := head(body, codec.JSON); ok {
			t.Errorf("A14 %s: uid %q", name, r.UID)
		}
	}
}

// A14: what a head in protobuf is and is not.
func TestDecodeHeadProtobuf(t *testing.T) {
	const v1, kind = "admission.k8s.io/v1", "AdmissionReview"
	request := text(1, text(1, "u"))
	whole := "k8s\x00" + text(1, text(1, v1), text(2, kind)) + text(2, request)
	for _, tt := range []struct {
		name, body string
		want       bool
	}{
		{"whole", whole, true},
		{"its content named", whole + text(4, codec.MediaTypeProtobuf), true},
		{"a response beside the request", "k8s\x00" + text(1, text(1, v1), text(2, kind)) + text(2, request, text(2, text(1, "u2"))), true},
		{"numbers where texts are not asked for", "k8s\x00" + text(1, text(1, v1), text(2, kind)) + text(2, text(1, number(11, 1), text(1, "u"))), true},
		{"uid twice", "k8s\x00" + text(1, text(1, v1), text(2, kind)) + text(2, text(1, text(1, "u"), text(1, "u"))), true},
		{"the type cut off", "k8s\x00" + text(2, request) + text(1, text(1, v1), text(2, kind), text(3, "xxxx"))[:2+2+len(v1)+2+len(kind)], false},
		{"no length", "k8s\x00" + text(1, text(1, v1), text(2, kind)) + "\x12", false},
		{"a length that is none", "k8s\x00\x12" + strings.Repeat("\xff", 11), false},
		{"a number cut off", "k8s\x00\x11\x01", false},
	} {
		b := codec.NewBody([]byte(tt.body), nil)
		r := codec.AcquireReview()
		if got := r.DecodeHead(b, codec.Protobuf); got != tt.want || got && (string(r.UID) != "u" || r.Version != codec.V1) {
			t.Errorf("%s: %v, uid %q", tt.name, got, r.UID)
		}
		codec.ReleaseReview(r)
		b.Release()
	}
}

// What was read of a review in front of its defect is there, unless it may not be
// Unicode.
func TestReadBeforeTheDefect(t *testing.T) {
	for _, tt := range []struct{ name, body, username string }{
		{"a key twice", `{"kind":"\u0041dmissionReview","apiVersion":"admission.k8s.io\/v1","request":{"uid":"\u0075","userInfo":{"username":"\u0061nn"},"name":"a","name":"b"}}`, "ann"},
		{"not Unicode", "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":\"u\",\"userInfo\":{\"username\":\"ann\"},\"name\":\"\xff\"}}", ""},
	} {
		for _, uid := range []string{"u" + strings.Repeat("x", 100), "u", "u"} { // the later ones in memory that was used
			freed := 0
			text := strings.NewReplacer(`"u"`, `"`+uid+`"`, `"\u0075"`, `"\u0075`+uid[1:]+`"`).Replace(tt.body)
			body := codec.NewBody([]byte(text), func([]byte) { freed++ })
			r := codec.AcquireReview()
			err := r.Decode(body)
			body.Release()
			if request := (*codec.RequestError)(nil); !errors.As(err, &request) || string(r.UID) != uid || r.Version != codec.V1 || string(r.User.Username) != tt.username {
				t.Errorf("%s: %v, uid %q of %q", tt.name, err, r.UID, r.User.Username)
			}
			if codec.ReleaseReview(r); freed != 1 {
				t.Errorf("%s: the body was freed %d times", tt.name, freed)
			}
		}
	}
}

// Keys have to be unique in one object, not in two.
func TestKeysOfTwoObjects(t *testing.T) {
	mustDecode(t, plainReview().with("userInfo", raw(`{"x":1,"extra":{"y":[]}}`), "x", 1, "y", 1).json())
	body := strings.Replace(plainReview().with("userInfo", raw(`{"x":1,"y":1}`), "z", 1).json(), `"z":1`, `"z":1,"z":2`, 1)
	if _, err := decode(t, body); err == nil || !strings.Contains(err.Error(), "duplicate key") {
		t.Errorf("a key twice behind objects of two keys: %v", err)
	}
}

func TestCheckJSON(t *testing.T) {
	for text, want := range map[string]bool{`{}`: true, ` [1,"é"] `: true, `"a"`: true, ``: false, `{`: false, `{}x`: false, "\"\xff\"": false, `"\ud800"`: false} {
		if err := codec.CheckJSON([]byte(text)); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// So many elements are read, and not one more.
func TestElementsAtTheLimit(t *testing.T) {
	const most = 1 << 20
	for n, want := range map[int]bool{most: true, most + 1: false} {
		groups := `["a"` + strings.Repeat(`,"a"`, n-1) + `]`
		if _, err := decode(t, plainReview().without("object").with("userInfo", raw(`{"groups":`+groups+`}`)).json()); (err == nil) != want {
			t.Errorf("%d elements: %v", n, err)
		}
	}
}

// TestReadableReview has the rows that are processed.
func TestReadableReview(t *testing.T) {
	t.Run("B6 nesting 9,000 and 10,000", func(t *testing.T) {
		for _, depth := range []int{9_000, 10_000} {
			n := depth - 3
			r := mustDecode(t, plainReview().with("object", raw(`{"a":`+strings.Repeat("[", n)+strings.Repeat("]", n)+`}`)).json())
			if len(r.Object.Raw) != 2*n+6 {
				t.Errorf("depth %d: the object has %d bytes", depth, len(r.Object.Raw))
			}
		}
	})
	t.Run("B8 v1beta1", func(t *testing.T) {
		v := plainReview()
		v.apiVersion = "admission.k8s.io/v1beta1"
		if r := mustDecode(t, v.json()); r.Version != codec.V1beta1 || string(r.UID) != "0f7c9d0e" {
			t.Errorf("got version %v and uid %q", r.Version, r.UID)
		}
	})
	t.Run("B9 uid of 128 bytes", func(t *testing.T) {
		uid := strings.Repeat("é", 64)
		if r := mustDecode(t, plainReview().with("uid", uid).json()); string(r.UID) != uid {
			t.Errorf("got %q", r.UID)
		}
	})
	t.Run("B11 unknown fields", func(t *testing.T) {
		body := swap(t, `"request":{`, `"x":[1,{"x":1,"x":2}],"request":{"future":{"uid":"other"},`)
		if r := mustDecode(t, body); string(r.Body.Bytes()) != body || string(r.UID) != "0f7c9d0e" {
			t.Errorf("uid %q, forwarded as %s", r.UID, r.Body.Bytes())
		}
	})
	t.Run("B11 duplicate keys in what is not read", func(t *testing.T) {
		mustDecode(t, plainReview().with("object", raw(`{"spec":{"a":1,"a":2},"spec":{},"metadata":{"annotations":{"a":"","a":""}}}`)).json())
	})
	t.Run("B11 case variants in what is not read", func(t *testing.T) {
		mustDecode(t, plainReview().with("object", raw(`{"Spec":1,"spec":2,"metadata":{"Annotations":{}}}`)).json())
	})
	t.Run("B12 object null on CREATE", func(t *testing.T) {
		if r := mustDecode(t, plainReview().with("object", nil).json()); !r.Object.IsNull() {
			t.Errorf("got %s", r.Object.Raw)
		}
	})
	t.Run("B12 old object null on UPDATE", func(t *testing.T) {
		if r := mustDecode(t, plainReview().with("operation", "UPDATE").json()); !r.OldObject.IsNull() || r.Operation != codec.Update {
			t.Errorf("got %v %s", r.Operation, r.OldObject.Raw)
		}
	})
	t.Run("B12 object without metadata", func(t *testing.T) {
		for _, object := range []string{`{"kind":"PodExecOptions"}`, `{"kind":"PodExecOptions","metadata":null}`} {
			if r := mustDecode(t, plainReview().with("object", raw(object)).json()); r.Object.HasMetadata() || r.Object.IsNull() {
				t.Errorf("%s: metadata %v, null %v", object, r.Object.HasMetadata(), r.Object.IsNull())
			}
		}
	})
	t.Run("B13 null counts as absent", func(t *testing.T) {
		r := mustDecode(t, plainReview().with("options", nil, "dryRun", nil, "name", nil, "userInfo", raw(`{"username":null,"groups":null,"extra":{"a":null}}`),
			"object", raw(`{"kind":null,"metadata":{"name":null,"labels":null}}`)).json())
		if r.Options != nil || r.DryRun || r.Name != nil || len(r.User.Groups) != 0 || len(r.Object.Labels) != 0 || !r.Object.HasMetadata() {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("B14 namespaces that differ", func(t *testing.T) {
		r := mustDecode(t, plainReview().with("namespace", "other").json())
		if string(r.Namespace) != "other" || string(r.Object.Namespace) != "shop" {
			t.Errorf("got %q and %q", r.Namespace, r.Object.Namespace)
		}
	})
	t.Run("B15 identical bytes", func(t *testing.T) {
		object := `{ "a": [9223372036854775807, 1.0, 1e3, -0, 12345678901234567890, 1E-7] , "\u0062" : "\u003c\/\u2028" }`
		body := swap(t, `"oldObject":null`, `"oldObject": `+object)
		if r := mustDecode(t, body); string(r.OldObject.Raw) != object || string(r.Body.Bytes()) != body {
			t.Errorf("got %s", r.OldObject.Raw)
		}
	})
	t.Run("B19 DELETE with an old object", func(t *testing.T) {
		r := mustDecode(t, plainReview().with("operation", "DELETE", "object", nil, "oldObject", raw(`{"metadata":{"name":"gone"}}`)).json())
		if r.Operation != codec.Delete || !r.Object.IsNull() || string(r.OldObject.Name) != "gone" {
			t.Errorf("got %v %s %s", r.Operation, r.Object.Raw, r.OldObject.Name)
		}
	})
	t.Run("B19 CONNECT pods/exec", func(t *testing.T) {
		r := mustDecode(t, plainReview().with("operation", "CONNECT", "subResource", "exec", "object", raw(`{"kind":"PodExecOptions","command":["sh"]}`)).json())
		if r.Operation != codec.Connect || string(r.SubResource) != "exec" || string(r.Object.Kind) != "PodExecOptions" {
			t.Errorf("got %v %s %s", r.Operation, r.SubResource, r.Object.Kind)
		}
	})
	t.Run("B21 userInfo absent", func(t *testing.T) {
		if r := mustDecode(t, plainReview().without("userInfo").json()); r.User.Username != nil {
			t.Errorf("got %q", r.User.Username)
		}
	})
	t.Run("B22 unusual names", func(t *testing.T) {
		name := "a\n\x1b[31m\"'\u202e\u0000"
		r := mustDecode(t, plainReview().with("name", name, "userInfo", map[string]any{"username": name, "uid": name, "groups": []string{name}}).json())
		for _, got := range [][]byte{r.Name, r.User.Username, r.User.UID, r.User.Groups[0]} {
			if string(got) != name {
				t.Errorf("got %q", got)
			}
		}
	})
}

func TestRequestKindAndResourceDefaultToKindAndResource(t *testing.T) {
	v := plainReview().without("requestKind", "requestResource").with("subResource", "status")
	r := mustDecode(t, v.json())
	if r.HasRequestResource || string(r.RequestKind.Kind) != "Pod" || string(r.RequestResource.Resource) != "pods" || string(r.RequestSubResource) != "status" {
		t.Errorf("got %v %s %s %s", r.HasRequestResource, r.RequestKind, r.RequestResource, r.RequestSubResource)
	}
	v.with("requestKind", nil, "requestResource", raw(`{"group":"apps","version":"v1","resource":"deployments"}`))
	r = mustDecode(t, v.json())
	if r.HasRequestResource || string(r.RequestKind.Kind) != "Pod" || string(r.RequestResource.Resource) != "deployments" || len(r.RequestSubResource) != 0 {
		t.Errorf("got %v %s %s %q", r.HasRequestResource, r.RequestKind, r.RequestResource, r.RequestSubResource)
	}
}

func TestDryRun(t *testing.T) {
	if r := mustDecode(t, plainReview().with("dryRun", true).json()); !r.DryRun {
		t.Error("dryRun: true is not seen")
	}
}

// A Review from the pool must not show anything of the one before.
func TestReviewIsEmptyAfterRelease(t *testing.T) {
	bare := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","resource":{"resource":"pods"}}}`
	for range 10 {
		body := codec.NewBody([]byte(plainReview().with("oldObject", raw(`{"metadata":{"labels":{"a":"b"}}}`)).json()), nil)
		r := codec.AcquireReview()
		if err := r.Decode(body); err != nil {
			t.Fatal(err)
		}
		codec.ReleaseReview(r)
		body.Release()

		got := mustDecode(t, bare)
		if len(got.User.Groups)+len(got.User.Extra)+len(got.Object.Labels)+len(got.OldObject.Labels) > 0 || got.Name != nil || got.Object.Raw != nil || got.Options != nil {
			t.Fatalf("got %+v", got)
		}
	}
}

// Unescaped strings stay valid while the memory that they are in grows.
func TestUnescapedStringsSurviveGrowth(t *testing.T) {
	var groups, want []string
	for i := range 5_000 {
		groups = append(groups, fmt.Sprintf(`"\u0067roup %d\n"`, i))
		want = append(want, fmt.Sprintf("group %d\n", i))
	}
	r := mustDecode(t, plainReview().with("userInfo", raw(`{"groups":[`+strings.Join(groups, ",")+`]}`)).json())
	for i, g := range r.User.Groups {
		if string(g) != want[i] {
			t.Fatalf("group %d is %q", i, g)
		}
	}
}

func TestReviewIsRetained(t *testing.T) {
	freed := 0
	body := codec.NewBody([]byte(plainReview().json()), func([]byte) { freed++ })
	r := codec.AcquireReview()
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	body.Release()
	r.Retain()
	if codec.ReleaseReview(r); freed != 0 || string(r.Name) != "web" {
		t.Errorf("the body was freed %d times while the Review is retained, whose name is %q", freed, r.Name)
	}
	if codec.ReleaseReview(r); freed != 1 {
		t.Errorf("the body was freed %d times", freed)
	}
}

func TestReviewRetainsItsBody(t *testing.T) {
	freed := 0
	body := codec.NewBody([]byte(plainReview().json()), func([]byte) { freed++ })
	r := codec.AcquireReview()
	if err := r.Decode(body); err != nil {
		t.Fatal(err)
	}
	if body.Release(); freed != 0 {
		t.Error("the body is gone while its Review is in use")
	}
	if codec.ReleaseReview(r); freed != 1 {
		t.Errorf("the body was freed %d times", freed)
	}
}
