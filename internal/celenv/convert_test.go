// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
)

// An object becomes what apimachinery makes of it.
func TestConvertLikeUnmarshal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(drawJSON(t, 6))
		var want any
		wantErr := utiljson.Unmarshal(raw, &want)
		c := converter{piece: rapid.IntRange(0, 40).Draw(t, "piece")}
		if wantErr == nil && rapid.Bool().Draw(t, "waits") { // what fails then does so when it is asked for
			c.of = &Variables{}
		}
		got, err := c.value(raw)
		if err == nil && whole(got) == nil {
			err = errors.New("not whole")
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v: %s", err, wantErr, raw)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, nativeOf(got)); diff != "" {
			t.Fatalf("-want +got: %s\n%s", diff, raw)
		}
	})
}

func drawJSON(t *rapid.T, depth int) string {
	pad := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space")
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth <= 0 || kind > 3 {
		return pad + rapid.SampledFrom([]string{
			`null`, `true`, `0`, `-7`, `1.0`, `1e3`, `9223372036854775807`, `9223372036854775808`, `1e999`,
			`""`, `"a,b"`, `"]}"`, `"\\"`, `"\""`, `"\u003c\\\","`, `"é"`, `{}`, `[]`,
		}).Draw(t, "scalar") + pad
	}
	values := make([]string, rapid.SampledFrom([]int{0, 1, 2, 3, 4, 6, 25}).Draw(t, "size"))
	for i := range values {
		values[i] = drawJSON(t, depth-2)
	}
	if kind < 2 {
		return "[" + pad + strings.Join(values, ",") + pad + "]"
	}
	for i := range values { // twice the same: the last one counts
		values[i] = pad + rapid.SampledFrom([]string{fmt.Sprintf(`"k%d"`, i), `"a"`, `"b"`, `"\u0061"`, `"c:,"`, `""`, `"{"`}).Draw(t, "key") + pad + ":" + values[i]
	}
	return "{" + pad + strings.Join(values, ",") + pad + "}"
}

// An object that takes long, also one that nests deep, is given up at the deadline.
func TestConversionEndsAtTheDeadline(t *testing.T) {
	for name, raw := range map[string]string{
		"long": `[` + strings.Repeat("0,", 1<<21) + `0]`,
		"deep": strings.Repeat("[", 9000) + strings.Repeat("{},", 1<<20) + `0` + strings.Repeat("]", 9000),
	} {
		if !json.Valid([]byte(raw)) {
			t.Fatal(name)
		}
		c := converter{piece: usualPiece, deadline: time.Now().Add(time.Millisecond)}
		if _, err := c.value([]byte(raw)); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What waits in an object is not converted after the deadline, and is when it is asked for
// again.
func TestWaitingEndsAtTheDeadline(t *testing.T) {
	v := &Variables{Input: Input{Review: decode(t, update), Object: objectOf(t, `{"spec":{"list":[`+strings.Repeat("{},", 1<<10)+`0]}}`)}}
	object, ok := v.objectValue(v.Object.Raw).(*typedMap)
	if !ok || object.members[0].value != nil {
		t.Fatal("nothing waits")
	}
	v.deadline = time.Now()
	if !types.IsError(object.at(0)) || !v.interrupted {
		t.Error("it is converted after the deadline")
	}
	v.deadline = time.Time{}
	if types.IsError(object.at(0)) || whole(object) == nil {
		t.Error("it is not converted any more")
	}
}

// A deadline that comes while the object is converted is one that comes before the
// result, and what was given up is not taken for the object later.
func TestInterruptedConversion(t *testing.T) {
	c := NewCompiler()
	condition, err := c.Compile(`size(object.list) > 1`)
	if err != nil {
		t.Fatal(err)
	}
	v := &Variables{Input: Input{Review: decode(t, update), Object: objectOf(t, `{"list":[`+strings.Repeat("0,", 1<<21)+`0]}`)}}
	if _, left, err := condition.Evaluate(v, Budget, time.Now().Add(time.Millisecond)); left >= 0 || !errors.Is(err, ErrInterrupted) {
		t.Errorf("%d left, %v", left, err)
	}
	if holds, _, err := condition.Evaluate(v, Budget, time.Time{}); !holds || err != nil {
		t.Errorf("%v, %v", holds, err)
	}
	if _, _, err := condition.Evaluate(&Variables{Input: Input{Review: decode(t, update), Object: objectOf(t, `{}`)}}, Budget, time.Now().Add(-time.Second)); !errors.Is(err, ErrInterrupted) {
		t.Errorf("after the deadline: %v", err)
	}
}
