// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

func addReviews(f *testing.F) {
	for _, body := range []string{
		plainReview().json(),
		plainReview().with("userInfo", nil, "object", raw(`{"metadata":{"labels":{"\ud83d\ude00":"\u0000"}}}`)).json(),
		plainReview().without("requestKind", "requestResource").with("object", nil, "oldObject", raw(`{"a":[1.5e-3,-0,true,null,{}]}`)).json(),
		plainReview().with("operation", "X", "dryRun", 1, "options", raw(`[]`)).json(),
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","x":{"x":1,"x":2}}}`,
		`{"reque\u017ft":{}}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `[1,]`, `01`, `-`, `"`, `nul`, ` { "a" : [ ] } `,
	} {
		f.Add([]byte(body))
	}
}

// isStrictJSON is the oracle: jsontext, which needs no opinion on duplicate keys.
func isStrictJSON(data []byte) bool { return isJSON(data, false) }

// isJSON is isStrictJSON, whose strings may hold what is not Unicode.
func isJSON(data []byte, foreign bool) bool {
	return jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(foreign))
}

// withoutForeign returns data with null in place of what belongs to the webhooks in
// objects, which are parts of it.
func withoutForeign(data []byte, objects ...[]byte) []byte {
	for _, object := range objects {
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) != nil {
			continue
		}
		rest := object
		for key, value := range members {
			if key != "apiVersion" && key != "kind" && key != "metadata" && isJSON(value, true) && !isStrictJSON(value) {
				rest = bytes.ReplaceAll(rest, value, []byte("null"))
			}
		}
		data = bytes.Replace(data, object, rest, 1)
	}
	return data
}

// checkSyntax makes sure that err blames the syntax of data exactly if the oracle
// does. objects are those that were read.
func checkSyntax(t testing.TB, data []byte, err error, objects ...[]byte) {
	t.Helper()
	blamed := err != nil && strings.Contains(err.Error(), "not strict JSON")
	if !blamed && err != nil {
		return
	}
	switch strict := isStrictJSON(data); {
	case blamed && strict:
		t.Fatalf("jsontext accepts what we refuse: %v: %q", err, data)
	case !blamed && !strict && (!isJSON(data, true) || !isStrictJSON(withoutForeign(data, objects...))):
		t.Fatalf("jsontext refuses what we accept: %q", data)
	}
}

func FuzzDecode(f *testing.F) {
	addReviews(f)
	fuzz.Run(f, func(t testing.TB, data []byte) { checkDecode(t, data) })
}

// checkDecode holds Decode against jsontext, which says what is JSON, and against
// encoding/json and apimachinery, which say what it means without and with regard
// to the case of keys. It reports whether the review is accepted.
func checkDecode(t testing.TB, data []byte) (accepted bool) {
	t.Helper()
	r, err := decode(t, string(data))
	checkSyntax(t, data, err, r.Object.Raw, r.OldObject.Raw)
	if request := (*codec.RequestError)(nil); errors.As(err, &request) && !isJSON(data, true) {
		t.Fatalf("a defect of syntax is hidden by %v", err)
	}
	if err != nil {
		return false
	}
	ours := ownFields(r)
	for name, unmarshal := range map[string]unmarshaler{"encoding/json": json.Unmarshal, "apimachinery": utiljson.Unmarshal} {
		var typed admissionv1.AdmissionReview
		if err := unmarshal(data, &typed); err != nil {
			t.Fatalf("%s refuses what we accept: %v", name, err)
		}
		if want := typedFields(&typed, unmarshal); !reflect.DeepEqual(want, ours) {
			t.Fatalf("(-%s +ours)\n%s", name, cmp.Diff(want, ours))
		}
	}
	return true
}

type unmarshaler func(data []byte, v any) error

// fields are what both decoders can say about a review, comparable.
type fields struct {
	APIVersion, UID, SubResource, RequestSubResource, Name, Namespace, Operation, Username, UserUID, Options string
	Kind, RequestKind, Resource, RequestResource                                                             [3]string
	Groups                                                                                                   []string
	Extra                                                                                                    map[string][]string
	Object, OldObject                                                                                        object
	DryRun, HasRequestResource                                                                               bool
}

// object is what both decoders can say about an object; null is the zero object.
type object struct {
	Raw, APIVersion, Kind, Name, Namespace, UID string
	Labels                                      map[string]string
	HasMetadata                                 bool
	Err                                         string // of the decoder
}

func typedFields(v *admissionv1.AdmissionReview, unmarshal unmarshaler) fields {
	r := v.Request
	got := fields{
		APIVersion: v.APIVersion, UID: string(r.UID), SubResource: r.SubResource, RequestSubResource: r.RequestSubResource,
		Kind: kindOf(r.Kind), RequestKind: kindOf(r.Kind), Resource: resourceOf(r.Resource), RequestResource: resourceOf(r.Resource),
		Name: r.Name, Namespace: r.Namespace, Operation: string(r.Operation),
		Username: r.UserInfo.Username, UserUID: r.UserInfo.UID, Groups: orNil(r.UserInfo.Groups), Extra: map[string][]string{},
		Object: typedObject(r.Object.Raw, unmarshal), OldObject: typedObject(r.OldObject.Raw, unmarshal), Options: nullAsEmpty(r.Options.Raw),
		DryRun: r.DryRun != nil && *r.DryRun, HasRequestResource: r.RequestKind != nil && r.RequestResource != nil,
	}
	if k := r.RequestKind; k != nil {
		got.RequestKind = kindOf(*k)
	}
	if k := r.RequestResource; k != nil {
		got.RequestResource = resourceOf(*k)
	} else {
		got.RequestSubResource = r.SubResource
	}
	for key, values := range r.UserInfo.Extra {
		got.Extra[key] = orNil(values)
	}
	return got
}

func kindOf(k metav1.GroupVersionKind) [3]string { return [3]string{k.Group, k.Version, k.Kind} }

func resourceOf(r metav1.GroupVersionResource) [3]string {
	return [3]string{r.Group, r.Version, r.Resource}
}

// orNil is a list in which nothing and none are the same.
func orNil(list []string) []string { return append([]string(nil), list...) }

func ownFields(r *codec.Review) fields {
	kind := func(k codec.GroupVersionKind) [3]string {
		return [3]string{string(k.Group), string(k.Version), string(k.Kind)}
	}
	resource := func(k codec.GroupVersionResource) [3]string {
		return [3]string{string(k.Group), string(k.Version), string(k.Resource)}
	}
	got := fields{
		APIVersion: r.Version.APIVersion(), UID: string(r.UID), SubResource: string(r.SubResource), RequestSubResource: string(r.RequestSubResource),
		Kind: kind(r.Kind), RequestKind: kind(r.RequestKind), Resource: resource(r.Resource), RequestResource: resource(r.RequestResource),
		Name: string(r.Name), Namespace: string(r.Namespace), Operation: r.Operation.String(),
		Username: string(r.User.Username), UserUID: string(r.User.UID), Groups: texts(r.User.Groups), Extra: map[string][]string{},
		Object: ownObject(&r.Object), OldObject: ownObject(&r.OldObject), Options: string(r.Options),
		DryRun: r.DryRun, HasRequestResource: r.HasRequestResource,
	}
	for _, e := range r.User.Extra {
		got.Extra[string(e.Key)] = texts(e.Values)
	}
	return got
}

func texts(list [][]byte) (texts []string) {
	for _, text := range list {
		texts = append(texts, string(text))
	}
	return texts
}

func nullAsEmpty(raw []byte) string {
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// typedObject is what unmarshal reads of an object.
func typedObject(raw []byte, unmarshal unmarshaler) object {
	var o struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   *struct {
			Name      string            `json:"name"`
			Namespace string            `json:"namespace"`
			UID       string            `json:"uid"`
			Labels    map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if nullAsEmpty(raw) == "" {
		return object{}
	}
	if err := unmarshal(raw, &o); err != nil {
		return object{Err: err.Error()}
	}
	got := object{Raw: string(raw), APIVersion: o.APIVersion, Kind: o.Kind}
	if m := o.Metadata; m != nil {
		got.HasMetadata, got.Name, got.Namespace, got.UID = true, m.Name, m.Namespace, m.UID
		if len(m.Labels) > 0 {
			got.Labels = m.Labels
		}
	}
	return got
}

func ownObject(o *codec.Object) object {
	if o.IsNull() {
		return object{}
	}
	got := object{Raw: string(o.Raw), APIVersion: string(o.APIVersion), Kind: string(o.Kind)}
	if o.HasMetadata() {
		got.HasMetadata, got.Name, got.Namespace, got.UID = true, string(o.Name), string(o.Namespace), string(o.UID)
		for _, l := range o.Labels {
			if got.Labels == nil {
				got.Labels = map[string]string{}
			}
			got.Labels[string(l.Key)] = string(l.Value)
		}
	}
	return got
}

func FuzzScanObject(f *testing.F) {
	for _, object := range []string{`{}`, `null`, `{"metadata":{"name":"a","labels":{"a":"b"}},"kind":"Pod","apiVersion":"v1","spec":[{}]}`, `{"metadata":{"labels":{"\u0061":"","a":""}}}`, `{"Kind":1}`, `[]`} {
		f.Add([]byte(object))
	}
	fuzz.Run(f, func(t testing.TB, data []byte) {
		var o codec.Object
		err := codec.ScanObject(&o, data)
		checkSyntax(t, data, err, bytes.TrimSpace(data))
		if err != nil {
			return
		}
		if want, got := typedObject(bytes.TrimSpace(data), json.Unmarshal), ownObject(&o); !reflect.DeepEqual(want, got) {
			t.Fatalf("(-encoding/json +ours)\n%s", cmp.Diff(want, got))
		}
	})
}

// FuzzAppendReview: the spliced review says what the received one said, apart
// from what was spliced.
func FuzzAppendReview(f *testing.F) {
	f.Add([]byte(plainReview().json()), []byte(`{"metadata":{"name":"other"}}`), true)
	f.Add([]byte(plainReview().with("object", nil).json()), []byte(``), true)
	f.Add([]byte(`{"request":{"object" : { } ,"uid":"u","operation":"CREATE","resource":{"resource":"pods"}},"kind":"AdmissionReview","apiVersion" : "admission.k8s.io\/v1beta1"}`), []byte(`{"a":1}`), false)
	f.Fuzz(func(t *testing.T, data, object []byte, other bool) {
		received, err := decode(t, string(data))
		if err != nil {
			return
		}
		var o codec.Object
		if codec.ScanObject(&o, object) != nil || o.IsNull() || received.Object.IsNull() {
			object = nil
		}
		version := received.Version
		if other {
			version = codec.V1 + codec.V1beta1 - version
		}
		spliced, err := decode(t, string(received.AppendReview(nil, version, object)))
		if err != nil {
			t.Fatalf("the spliced review cannot be read: %v", err)
		}
		want, got := ownFields(received), ownFields(spliced)
		want.APIVersion = version.APIVersion()
		if object != nil {
			want.Object = ownObject(&o)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("(-want +got)\n%s", cmp.Diff(want, got))
		}
	})
}
