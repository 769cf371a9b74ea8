// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// C25: keeping the lowest keys as they come is what sorting all of them gives.
func TestAnnotationsAreTheLowest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching("[a-d]{1,3}|-x|dispatcher\\.dev\\.x"), 0, 200).Draw(t, "keys")
		var members []string
		last := map[string]string{}
		for i, key := range keys {
			value, _ := json.Marshal(strings.Repeat("v", i%7))
			members = append(members, `"`+key+`":`+string(value))
			if !strings.HasPrefix(key, "-") && !strings.HasPrefix(key, "dispatcher") {
				last[key] = strings.Repeat("v", i%7)
			}
		}
		sorted := slices.Sorted(maps.Keys(last))
		var want []codec.Annotation
		for _, key := range sorted[:min(len(sorted), 32)] {
			want = append(want, codec.Annotation{Key: key, Value: last[key]})
		}
		// Two of one key are read differently, but not by kube-apiserver.
		resp, err := codec.Verify([]byte(in(`"allowed":true,"auditAnnotations":{`+strings.Join(members, ",")+`}`)), expect(codec.V1, false, codec.APIServer))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, resp.Annotations); diff != "" || resp.DroppedAnnotations != len(keys)-len(want) {
			t.Fatalf("%d of %d dropped (-want +got)\n%s", resp.DroppedAnnotations, len(keys), diff)
		}
	})
}

// C12: what may be seen of an answer that cannot be read.
func TestMentionsDenial(t *testing.T) {
	for text, want := range map[string]bool{
		`{"allowed":false`:                true,
		`{"Allowed" : false`:              true,
		"allowed: false":                  true,
		"'allowed': False":                true,
		"\"allowed\"\n\t:\r\n  false}":    true,
		`"allowed":true,"allowed":false`:  true,
		`"allowed":true`:                  false,
		`"allowed":"false"`:               false,
		`"allowed":fals`:                  false,
		`"allowed"`:                       false,
		`"allowed" false`:                 false,
		`"message":"{\"allowed\":false}"`: false,
		`"hallowed":false`:                true, // nobody's key
		`llowed:false`:                    false,
		`"followed":false`:                false,
		`llowed:true,"allowed":false`:     true,
		`"allowed":` + strings.Repeat(" ", 1024) + `false`: true,
		`"allowed":` + strings.Repeat(" ", 1025) + `false`: false,
		``: false,
		`"allowed":` + strings.Repeat(" ", 2000) + `false`: false,
	} {
		if got := codec.MentionsDenial([]byte(text)); got != want {
			t.Errorf("%.60q: got %v", text, got)
		}
	}
	if codec.MentionsDenial([]byte(`"allowed":false`)[:len(`"allowed":fals`)]) {
		t.Error("it reads behind the text")
	}
}
