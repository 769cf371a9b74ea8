// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// FuzzMerge merges apply configurations into objects. What it returns is a patch, by which
// the object keeps all its members that the configuration does not name, has all those
// scalars that it does, and is not changed by the configuration any more; or an error that
// tells whose fault it is.
func FuzzMerge(f *testing.F) {
	kinds := []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "ConfigMap"}, {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Group: "example.com", Version: "v1", Kind: "Pod"},
	}
	for i, seed := range [][2]string{
		{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"containers":[{"name":"a","image":"i","ports":[{"containerPort":1}]},{"name":"b"}]}}`,
			`{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"b","image":"j","env":[{"name":"E","value":"1"}]},{"name":"c"}]}}`},
		{`{"spec":{"replicas":1,"template":{"spec":{"tolerations":[{"key":"a"}]}}}}`, `{"spec":{"replicas":2,"template":{"metadata":{"annotations":{"a":""}}}}}`},
		{`{"spec":{"ports":[{"port":1,"protocol":"TCP"},{"port":1,"protocol":"UDP"}]}}`, `{"spec":{"ports":[{"port":1,"protocol":"UDP","name":"dns"}]}}`},
		{`{"data":{"a":"b"},"immutable":false,"later":{"field":[1]}}`, `{"data":{"c":"d"},"later":{"field":[2],"more":1}}`},
		{`{"spec":{"rules":[{"host":"a"}]}}`, `{"spec":{"ingressClassName":"x","rules":[]}}`},
		{`{"spec":{}}`, `{"spec":{"nodeSelector":{"a":"b"}}}`},
		{`{"metadata":{"labels":{}}}`, `{"metadata":{"labels":null},"spec":{"containers":null,"nodeSelector":null}}`}, {`{}`, `{"metadata":null,"spec":null}`},
		{`{"spec":{"containers":[{"name":"a"},{"name":"a"}],"priority":1e3}}`, `{"spec":{"priority":10,"terminationGracePeriodSeconds":null}}`},
	} {
		f.Add(byte(i), []byte(seed[0]), []byte(seed[1]))
		f.Add(byte(0), []byte(seed[0]), []byte(seed[1]))
	}
	fuzz.Run(f, func(t testing.TB, which byte, object, configuration []byte) {
		kind := kinds[int(which)%len(kinds)]
		patch, err := merge(object, configuration, kind)
		if again, same := merge(object, configuration, kind); string(again) != string(patch) || (same == nil) != (err == nil) {
			t.Errorf("one merge comes to %s, %v and to %s, %v", patch, err, again, same)
		}
		if err != nil {
			var merging *mergeError
			var unknown *unknownKind
			if !errors.As(err, &merging) && !errors.As(err, &unknown) {
				t.Errorf("it fails with %v", err)
			}
			return
		}
		before, said := decoded(t, object), decoded(t, configuration)
		if before == nil {
			return // null is no object that could be mutated
		}
		changed := patched(t, object, patch)
		keeps(t, before, said, decoded(t, changed))
		if again, err := merge(changed, configuration, kind); err != nil || !jsonpatchv4.Equal(patched(t, changed, again), changed) {
			t.Errorf("%s into %s comes to %s, which it changes again by %s, %v", configuration, object, changed, again, err)
		}
	})
}

// patched is the object with a patch.
func patched(t testing.TB, object, patch []byte) []byte {
	t.Helper()
	if patch == nil {
		return object
	}
	operations, err := jsonpatchv4.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s is no patch: %v", patch, err)
	}
	changed, err := operations.Apply(object)
	if err != nil {
		t.Fatalf("%s does not apply to %s: %v", patch, object, err)
	}
	return changed
}

func decoded(t testing.TB, text []byte) (object map[string]any) {
	t.Helper()
	if err := utiljson.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

// keeps fails the test unless each member of before that said does not name is in after, as
// it was, and each scalar of said.
func keeps(t testing.TB, before, said, after map[string]any) {
	t.Helper()
	for name, was := range before {
		of, named := said[name]
		is, there := after[name]
		is1, isMap := is.(map[string]any)
		was1, wasMap := was.(map[string]any)
		of1, ofMap := of.(map[string]any)
		switch {
		case name == "apiVersion", name == "kind", !named:
			if diff := cmp.Diff(was, is); !there || diff != "" {
				t.Errorf("%s is not kept:\n%s", name, diff)
			}
		case wasMap && ofMap && isMap:
			keeps(t, was1, of1, is1)
		}
	}
	for name, of := range said {
		switch of.(type) {
		case string, bool, int64:
			if text, _ := json.Marshal(after[name]); name != "apiVersion" && name != "kind" && !cmp.Equal(of, after[name]) {
				t.Errorf("%s is %s, not %v", name, text, of)
			}
		}
	}
}
