// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzIndex compares what is read of an index of OpenAPI documents with what encoding/json
// reads: of the documents that are wanted, and no more than is kept of a URL. It does not
// depend on the pieces in which it comes.
func FuzzIndex(f *testing.F) {
	for _, seed := range []string{
		`{"paths":{".well-known/openid-configuration":{"serverRelativeURL":"/openapi/v3/.well-known/openid-configuration?hash=A"},"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=B"},"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=C"}}}`,
		`{"paths":{"api/v1":null,"apis/apps/v1":{"a":[{}],"serverRelativeURL":5}},"more":{"paths":{"api/v1":{"serverRelativeURL":"no"}}}}`,
		`{"paths":null}`, `null`, `[]`, `{"paths":[]}`, `{"paths":{"api/v1":"x"}}`, `{"paths":{"api/v1":{"serverRelativeURL":"x"`, `{"paths":{}}{}`,
		`{"paths":{"api/v1":{"serverRelativeURL":"` + strings.Repeat("é", maxMark) + `"}}}`, `{"paths":{"api/v1":{"serverRelativeURL":"\ud83d\ude00\n"}}}`,
	} {
		f.Add([]byte(seed))
	}
	wanted := map[string]bool{pathOf(schema.GroupVersion{Version: "v1"}): true, pathOf(schema.GroupVersion{Group: "apps", Version: "v1"}): true}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readIndex(bytes.NewReader(data), wanted)
		again, pieces := readIndex(iotest.OneByteReader(bytes.NewReader(data)), wanted)
		if (err == nil) != (pieces == nil) || !cmp.Equal(got, again) {
			t.Errorf("%v, %v in pieces; whole (-) and in pieces (+):\n%s", err, pieces, cmp.Diff(got, again))
		}
		for path, mark := range got {
			if !wanted[path] || len(mark) > maxMark {
				t.Errorf("kept is %q: %d bytes", path, len(mark))
			}
		}
		var index map[string]any
		if err != nil || !utf8.Valid(data) || json.NewDecoder(bytes.NewReader(data)).Decode(&index) != nil || ambiguous(data) {
			return // it is more lenient about what it drops
		}
		want := map[string]string{}
		paths, _ := index["paths"].(map[string]any)
		for path := range wanted {
			members, _ := paths[path].(map[string]any)
			if mark, there := members["serverRelativeURL"]; there {
				text, _ := mark.(string)
				want[path] = text
			}
		}
		for path, mark := range want {
			if len(mark) > maxMark && strings.HasPrefix(mark, got[path]) && len(got[path]) > maxMark-utf8.UTFMax {
				want[path] = got[path]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("encoding/json (-), kept (+):\n%s", diff)
		}
	})
}

// ambiguous reports whether a member that is read may be there twice, or spelled in two ways.
func ambiguous(data []byte) bool {
	for _, key := range []string{`"paths"`, `"api/v1"`, `"apis/apps/v1"`} {
		if bytes.Count(data, []byte(key)) > 1 {
			return true
		}
	}
	return bytes.Count(data, []byte(`"serverRelativeURL"`)) > 2 || bytes.Contains(data, []byte(`\`))
}
