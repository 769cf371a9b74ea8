// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// maxEntries is how many keys and elements a review may have that are kept.
const maxEntries = 1 << 20

// TestLargeReviews has the rows about size. What is bounded is memory: a Review
// may need a few times its Body for its labels, and nothing for the rest.
func TestLargeReviews(t *testing.T) {
	million := 1_000_000
	if raceEnabled {
		million /= 10
	}
	threeMiB := fmt.Sprintf(`{"metadata":{"name":"big"},"data":{"a":%q}}`, strings.Repeat("x\ty ", 3<<18))
	tests := []struct {
		name, body string
		allowance  int // bytes allocated per byte of the body
	}{
		{"B16 3 MiB object and 3 MiB old object", plainReview().with("object", raw(threeMiB), "oldObject", raw(threeMiB)).json(), 0},
		{"B16 one 6 MiB string", plainReview().with("object", map[string]any{"a": strings.Repeat("x", 6<<20)}).json(), 0},
		{"B16 one 6 MiB string of escapes", plainReview().with("name", strings.Repeat("\n", 3<<20)).json(), 4},
		{"B16 a million small keys", plainReview().with("object", raw(repeated(million, `{`, `"a":1`, `}`))).json(), 0},
		{"B16 a million distinct keys in metadata", plainReview().with("object", raw(`{"metadata":`+distinct(million, `1`)+`}`)).json(), 16},
		{"B16 a million labels", plainReview().with("object", raw(`{"metadata":{"labels":`+distinct(million, `""`)+`}}`)).json(), 20},
		{"B16 a million empty objects", plainReview().with("object", raw(`{"a":`+repeated(million, `[`, `{}`, `]`)+`}`)).json(), 0},
		{"B21 10,000 groups", plainReview().with("userInfo", raw(`{"groups":`+repeated(10_000, `[`, `"g"`, `]`)+`}`)).json(), 50},
		{"B21 1 MiB of extra", plainReview().with("userInfo", raw(`{"extra":{"a":["`+strings.Repeat("x", 1<<20)+`"]}}`)).json(), 0},
		{"B21 100,000 keys of extra", plainReview().with("userInfo", raw(`{"extra":`+distinct(100_000, `["v"]`)+`}`)).json(), 50},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := allocated()
			mustDecode(t, tt.body)
			if got, most := allocated()-before, 100_000+len(tt.body)*(1+tt.allowance); got > most {
				t.Errorf("%d bytes were allocated for %d, more than %d", got, len(tt.body), most)
			}
		})
	}
	t.Run("B16 more keys than fit into an object", func(t *testing.T) {
		for name, object := range map[string]string{
			"labels":   `{"metadata":{"labels":` + distinct(maxEntries+1, `""`) + `}}`,
			"metadata": `{"metadata":` + distinct(maxEntries+1, `1`) + `}`,
		} {
			var bad *codec.RequestError
			if _, err := decode(t, plainReview().with("object", raw(object)).json()); !errors.As(err, &bad) || !strings.Contains(bad.Reason, "more than 1,048,576") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("a hostile review does not stay in the pool", func(t *testing.T) {
		for range 20 {
			r := codec.AcquireReview()
			if n := cap(r.Object.Labels) + cap(r.User.Groups) + cap(r.User.Extra); n > 1000 {
				t.Errorf("a pooled Review has room for %d", n)
			}
			t.Cleanup(func() { codec.ReleaseReview(r) })
		}
	})
}

func allocated() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.TotalAlloc)
}

func repeated(n int, open, element, closing string) string {
	return open + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + closing
}

// distinct returns an object with n keys in an order that suits no sorting.
func distinct(n int, value string) string {
	b := []byte{'{'}
	for i := range n {
		b = fmt.Appendf(b, `"%x":%s,`, uint32(i)*2654435761, value)
	}
	b[len(b)-1] = '}'
	return string(b)
}
