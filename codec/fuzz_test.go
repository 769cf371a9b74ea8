// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/codec"
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
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(foreign))
	if err := d.SkipValue(); err != nil {
		return false
	}
	_, err := d.ReadToken()
	return errors.Is(err, io.EOF)
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
func checkSyntax(t *testing.T, data []byte, err error, objects ...[]byte) {
	t.Helper()
	blamed := err != nil && strings.Contains(err.Error(), "not strict JSON")
	switch {
	case blamed && isStrictJSON(data):
		t.Fatalf("jsontext accepts what we refuse: %v", err)
	case err == nil && (!isJSON(data, true) || !isStrictJSON(data) && !isStrictJSON(withoutForeign(data, objects...))):
		t.Fatal("jsontext refuses what we accept")
	}
}

func FuzzDecode(f *testing.F) {
	addReviews(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		checkDecode(t, data)
	})
}

// checkDecode holds Decode against jsontext, which says what is JSON, and against
// encoding/json and apimachinery, which say what it means without and with regard
// to the case of keys. It reports whether the review is accepted.
func checkDecode(t *testing.T, data []byte) (accepted bool) {
	t.Helper()
	r, err := decode(t, string(data))
	checkSyntax(t, data, err, r.Object.Raw, r.OldObject.Raw)
	if request := (*codec.RequestError)(nil); errors.As(err, &request) && !isJSON(data, true) {
		t.Fatalf("a defect of syntax is hidden by %v", err)
	}
	if err != nil {
		return false
	}
	for name, unmarshal := range map[string]unmarshaler{"encoding/json": json.Unmarshal, "apimachinery": utiljson.Unmarshal} {
		var typed admissionv1.AdmissionReview
		if err := unmarshal(data, &typed); err != nil {
			t.Fatalf("%s refuses what we accept: %v", name, err)
		}
		if want, got := typedFields(&typed, unmarshal), ownFields(r); !reflect.DeepEqual(want, got) {
			t.Fatalf("(-%s +ours)\n%s", name, cmp.Diff(want, got))
		}
	}
	return true
}

type unmarshaler func(data []byte, v any) error

// fields are what both decoders can say about a review, comparable.
type fields struct {
	APIVersion, UID, Kind, RequestKind, Resource, RequestResource, SubResource, RequestSubResource string
	Name, Namespace, Operation, Username, UserUID, Groups, Object, OldObject, Options              string
	Extra                                                                                          map[string]string
	DryRun, HasRequestResource                                                                     bool
}

func typedFields(v *admissionv1.AdmissionReview, unmarshal unmarshaler) fields {
	r := v.Request
	got := fields{
		APIVersion: v.APIVersion, UID: string(r.UID), SubResource: r.SubResource, RequestSubResource: r.RequestSubResource,
		Kind:     fmt.Sprintf("%q", []string{r.Kind.Group, r.Kind.Version, r.Kind.Kind}),
		Resource: fmt.Sprintf("%q", []string{r.Resource.Group, r.Resource.Version, r.Resource.Resource}),
		Name:     r.Name, Namespace: r.Namespace, Operation: string(r.Operation),
		Username: r.UserInfo.Username, UserUID: r.UserInfo.UID, Groups: fmt.Sprintf("%q", r.UserInfo.Groups), Extra: map[string]string{},
		Object: typedObject(r.Object.Raw, unmarshal), OldObject: typedObject(r.OldObject.Raw, unmarshal), Options: nullAsEmpty(r.Options.Raw),
		DryRun: r.DryRun != nil && *r.DryRun, HasRequestResource: r.RequestKind != nil && r.RequestResource != nil,
	}
	got.RequestKind, got.RequestResource = got.Kind, got.Resource
	if k := r.RequestKind; k != nil {
		got.RequestKind = fmt.Sprintf("%q", []string{k.Group, k.Version, k.Kind})
	}
	if k := r.RequestResource; k != nil {
		got.RequestResource = fmt.Sprintf("%q", []string{k.Group, k.Version, k.Resource})
	} else {
		got.RequestSubResource = r.SubResource
	}
	for key, values := range r.UserInfo.Extra {
		got.Extra[key] = fmt.Sprintf("%q", []string(values))
	}
	return got
}

func ownFields(r *codec.Review) fields {
	kind := func(k codec.GroupVersionKind) string { return fmt.Sprintf("%q", [][]byte{k.Group, k.Version, k.Kind}) }
	resource := func(k codec.GroupVersionResource) string {
		return fmt.Sprintf("%q", [][]byte{k.Group, k.Version, k.Resource})
	}
	got := fields{
		APIVersion: r.Version.APIVersion(), UID: string(r.UID), SubResource: string(r.SubResource), RequestSubResource: string(r.RequestSubResource),
		Kind: kind(r.Kind), RequestKind: kind(r.RequestKind), Resource: resource(r.Resource), RequestResource: resource(r.RequestResource),
		Name: string(r.Name), Namespace: string(r.Namespace), Operation: r.Operation.String(),
		Username: string(r.User.Username), UserUID: string(r.User.UID), Groups: fmt.Sprintf("%q", r.User.Groups), Extra: map[string]string{},
		Object: ownObject(&r.Object), OldObject: ownObject(&r.OldObject), Options: string(r.Options),
		DryRun: r.DryRun, HasRequestResource: r.HasRequestResource,
	}
	for _, e := range r.User.Extra {
		got.Extra[string(e.Key)] = fmt.Sprintf("%q", e.Values)
	}
	return got
}

func nullAsEmpty(raw []byte) string {
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// typedObject is what unmarshal reads of an object, as text.
func typedObject(raw []byte, unmarshal unmarshaler) string {
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
		return ""
	}
	if err := unmarshal(raw, &o); err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%s %q %q", raw, o.APIVersion, o.Kind)
	if m := o.Metadata; m != nil {
		text += fmt.Sprintf(" %q %q %q %q", m.Name, m.Namespace, m.UID, m.Labels)
	}
	return text
}

func ownObject(o *codec.Object) string {
	if o.IsNull() {
		return ""
	}
	text := fmt.Sprintf("%s %q %q", o.Raw, o.APIVersion, o.Kind)
	if o.HasMetadata {
		labels := map[string]string{}
		for _, l := range o.Labels {
			labels[string(l.Key)] = string(l.Value)
		}
		text += fmt.Sprintf(" %q %q %q %q", o.Name, o.Namespace, o.UID, labels)
	}
	return text
}

func FuzzScanObject(f *testing.F) {
	for _, object := range []string{`{}`, `null`, `{"metadata":{"name":"a","labels":{"a":"b"}},"kind":"Pod","apiVersion":"v1","spec":[{}]}`, `{"metadata":{"labels":{"\u0061":"","a":""}}}`, `{"Kind":1}`, `[]`} {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o codec.Object
		err := codec.ScanObject(&o, data)
		checkSyntax(t, data, err, bytes.TrimSpace(data))
		if err != nil {
			return
		}
		if diff := cmp.Diff(typedObject(bytes.TrimSpace(data), json.Unmarshal), ownObject(&o)); diff != "" {
			t.Fatalf("(-encoding/json +ours)\n%s", diff)
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
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}
