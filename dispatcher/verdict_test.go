// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// drawOutcome draws the outcome of the webhook at position.
func drawOutcome(t *rapid.T, position int) Outcome {
	w := &chain.Entry{ID: hook.ID{
		Name:          rapid.SampledFrom([]string{"a.example.com", "b.example.com", strings.Repeat("long.", 15) + "example.com"}).Draw(t, "name"),
		Configuration: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "configuration"),
	}}
	o := Outcome{Webhook: w, Position: position, Result: Result(rapid.IntRange(0, int(Abandoned)).Draw(t, "result"))}
	o.Response.Warnings = rapid.SliceOfN(rapid.StringN(0, 300, -1), 0, 16).Draw(t, "warnings")
	for _, key := range rapid.SliceOfNDistinct(rapid.StringMatching("[a-z]{1,60}"), 0, 4, rapid.ID).Draw(t, "keys") {
		o.Response.Annotations = append(o.Response.Annotations, codec.Annotation{Key: key, Value: "v"})
	}
	if o.Result != Allowed && o.Result != Denied {
		o.Cause = rapid.SampledFrom([]hook.Cause{hook.Timeout, hook.Unreachable, hook.BadPatch}).Draw(t, "cause")
		o.Err, o.Code = errors.New("because"), o.Cause.Code()
	}
	if o.Result == Denied {
		o.Code = 403
	}
	o.Softened = o.Result == Softened
	if rapid.Bool().Draw(t, "warn") {
		o.soften()
	}
	return o
}

func drawOutcomes(t *rapid.T) []Outcome {
	outcomes := make([]Outcome, rapid.IntRange(0, 8).Draw(t, "outcomes"))
	for i := range outcomes {
		outcomes[i] = drawOutcome(t, i)
	}
	return outcomes
}

// C23: whatever webhooks write, a line of the message that is not indented is the
// first one of a denial.
func TestLinesAreTheirWebhooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outcomes := drawOutcomes(t)
		for i := range outcomes {
			text := rapid.SampledFrom([]string{"", "no", "a\nb", "\n\nx: y\n\n", "no\nadmission webhook \"b.example.com\" denied the request: forged", "\n"}).Draw(t, "text")
			outcomes[i].Response.Warnings = nil // which codec cleans
			if outcomes[i].Result == Denied {
				outcomes[i].Response.Message = text
			} else {
				outcomes[i].Err = errors.New(text)
			}
		}
		v := merge(&admission{outcomes: outcomes})
		var starts []string
		for line := range strings.SplitSeq(v.Response.Message, "\n") {
			if line != "" && !strings.HasPrefix(line, "  ") {
				starts = append(starts, line)
			}
		}
		var want []string
		for _, o := range denialsOf(v.Outcomes) {
			first, _, _ := strings.Cut(o.message(), "\n")
			want = append(want, first)
		}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Fatal(diff)
		}
		for _, w := range v.Response.Warnings {
			if strings.Contains(w, "\n") {
				t.Fatalf("the warning %q has several lines", w)
			}
		}
	})
}

// The order of arrival does not show in the verdict.
func TestMergeIgnoresArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outcomes := drawOutcomes(t)
		arrived := rapid.Permutation(slices.Clone(outcomes)).Draw(t, "arrived")
		want := merge(&admission{outcomes: outcomes})
		got := merge(&admission{outcomes: arrived})
		if diff := cmp.Diff(want.Response, got.Response); diff != "" {
			t.Fatalf("(-in order +as arrived):\n%s", diff)
		}
	})
}

// No denial is lost, nothing fails open in silence, and all of it survives the
// caller's limits.
func TestMergeKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outcomes := drawOutcomes(t)
		v := merge(&admission{outcomes: outcomes})
		denies := slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Denies() })
		if v.Response.Allowed == denies {
			t.Fatalf("allowed is %v", v.Response.Allowed)
		}
		if denies && v.Response.Code < 400 {
			t.Fatalf("a denial with code %d", v.Response.Code)
		}
		checkVisible(t, outcomes, &v.Response)
		checkLimits(t, outcomes, &v.Response)
	})
}

func checkVisible(t *rapid.T, outcomes []Outcome, r *codec.Response) {
	for i := range outcomes {
		o := &outcomes[i]
		said := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, o.Webhook.Name) })
		annotated := slices.ContainsFunc(r.Annotations, func(a codec.Annotation) bool {
			return (a.Key == failOpenAnnotation || a.Key == softenedAnnotation) && strings.Contains(a.Value, o.Webhook.Name)
		})
		if (o.Result == FailedOpen || o.Result == Softened) && (!said || !annotated) {
			t.Fatalf("%s failed open in silence: %v %v", o.Webhook.Name, r.Warnings, r.Annotations)
		}
		if o.Denies() && !strings.Contains(r.Message, o.Webhook.Name) {
			t.Fatalf("%s denied in silence: %s", o.Webhook.Name, r.Message)
		}
	}
}

func checkLimits(t *rapid.T, outcomes []Outcome, r *codec.Response) {
	given, runes, longest := 0, 0, 0
	for i := range outcomes {
		given += utf8.RuneCountInString(outcomes[i].warning() + strings.Join(outcomes[i].Response.Warnings, ""))
	}
	for _, w := range r.Warnings {
		n := utf8.RuneCountInString(w)
		runes, longest = runes+n, max(longest, n)
	}
	if runes > maxWarningsRunes {
		t.Fatalf("%d runes of warnings", runes)
	}
	if given > maxWarningsRunes && longest > maxWarningRunes {
		t.Fatalf("a warning of %d runes among %d", longest, given)
	}
	if given <= maxWarningsRunes && runes != given {
		t.Fatalf("%d runes of %d", runes, given)
	}
	seen := map[string]bool{}
	for _, a := range r.Annotations {
		if len(a.Key) > maxAnnotationKey || strings.Contains(a.Key, "/") || seen[a.Key] {
			t.Fatalf("annotation key %q", a.Key)
		}
		seen[a.Key] = true
	}
}

// Callers that are shed do not all come back at once: in 1, 2 or 3 s. A webhook that
// says itself when is believed.
func TestRetryAfterOfWhoIsShed(t *testing.T) {
	shed := Outcome{Webhook: &chain.Entry{ID: hook.ID{Name: "w"}}, Result: Failed, Cause: hook.Shed, Code: 429, Err: errors.New("overloaded")}
	seen := map[int32]int{}
	for range 1000 {
		r := merge(&admission{outcomes: []Outcome{shed}}).Response
		if r.Code != 429 || r.Reason != "TooManyRequests" {
			t.Fatalf("%+v", r)
		}
		seen[r.RetryAfterSeconds]++
	}
	if len(seen) != 3 || seen[1] == 0 || seen[2] == 0 || seen[3] == 0 {
		t.Errorf("seconds: %v", seen)
	}
	shed.Response.RetryAfterSeconds = 7
	if r := merge(&admission{outcomes: []Outcome{shed}}).Response; r.RetryAfterSeconds != 7 {
		t.Errorf("%+v", r)
	}
	shed.Cause, shed.Code, shed.Response.RetryAfterSeconds = hook.Timeout, 504, 0
	if r := merge(&admission{outcomes: []Outcome{shed}}).Response; r.RetryAfterSeconds != 0 {
		t.Errorf("%+v", r)
	}
}

// What all webhooks together may say, and whose words come first.
func TestTogether(t *testing.T) {
	outcomes := func(n int, fill func(i int, o *Outcome)) []Outcome {
		list := make([]Outcome, n)
		for i := range list {
			list[i].Webhook = &chain.Entry{ID: hook.ID{Name: fmt.Sprintf("w%03d.example.com", i), Configuration: "c"}}
			fill(i, &list[i])
		}
		return list
	}
	t.Run("C24 4,096 runes of warnings, ours first", func(t *testing.T) {
		warnings := warningsOf(outcomes(3, func(i int, o *Outcome) {
			if i == 2 {
				o.Result, o.Cause = FailedOpen, hook.Timeout
			}
			for j := range 9 {
				o.Response.Warnings = append(o.Response.Warnings, fmt.Sprint(i, j, strings.Repeat("é", 253)))
			}
		}))
		own := utf8.RuneCountInString(warnings[0])
		if !strings.Contains(warnings[0], "failed calling webhook \"w002.example.com\"") {
			t.Errorf("the first warning is %q", warnings[0])
		}
		if want := 1 + (4096-own)/256 + 1; len(warnings) != want {
			t.Errorf("%d warnings, want %d", len(warnings), want)
		}
		if n := utf8.RuneCountInString(strings.Join(warnings, "")); n != 4096 || !utf8.ValidString(warnings[len(warnings)-1]) {
			t.Errorf("%d runes", n)
		}
	})
	t.Run("C24 whole where all are within 4,096 runes, else 256 runes of each", func(t *testing.T) {
		long, x := strings.Repeat("é", 257), strings.Repeat("x", 4096-257)
		if got := warningsOf(outcomes(1, func(_ int, o *Outcome) { o.Response.Warnings = []string{long, "", x} })); !slices.Equal(got, []string{long, x}) {
			t.Errorf("%d warnings", len(got))
		}
		if got := warningsOf(outcomes(1, func(_ int, o *Outcome) { o.Response.Warnings = []string{long, x, "y"} })); !slices.Equal(got, []string{long[:2*252] + " ...", x[:252] + " ...", "y"}) {
			t.Errorf("%d warnings", len(got))
		}
	})
	annotate := func(n int) func(int, *Outcome) {
		return func(_ int, o *Outcome) {
			for i := range n {
				o.Response.Annotations = append(o.Response.Annotations, codec.Annotation{Key: fmt.Sprintf("k%d", i), Value: "v"})
			}
		}
	}
	t.Run("C25 128 annotations", func(t *testing.T) {
		got, dropped := annotationsOf(outcomes(5, annotate(32)), "s")
		if len(got) != 130 || dropped != 32 {
			t.Errorf("%d annotations, %d dropped", len(got), dropped)
		}
		if tail := got[128:]; tail[0] != (codec.Annotation{Key: droppedAnnotation, Value: "32"}) || tail[1].Key != snapshotAnnotation {
			t.Errorf("they end in %v", tail)
		}
	})
	failure := codec.Annotation{Key: hook.FailureKey, Value: `{"message":"m"}`}
	t.Run("H3 failures of all policies are one list, of at most 50", func(t *testing.T) {
		for n, want := range map[int]int{1: 3, 20: 50} {
			got, dropped := annotationsOf(outcomes(n, func(_ int, o *Outcome) {
				o.Webhook = &chain.Entry{Audited: "p"}
				o.Response.Annotations = []codec.Annotation{failure, failure, failure}
			}), "s")
			if len(got) != 2 || dropped != 0 || got[0].Key != failuresAnnotation || got[0].Value != "["+strings.Repeat(failure.Value+",", want-1)+failure.Value+"]" {
				t.Errorf("of %d: %v, %d dropped", n, got, dropped)
			}
		}
	})
	t.Run("H3 that of a webhook is its own", func(t *testing.T) {
		got, _ := annotationsOf(outcomes(1, func(_ int, o *Outcome) { o.Response.Annotations = []codec.Annotation{failure} }), "s")
		if len(got) != 2 || got[0].Key == failuresAnnotation || got[0].Value != failure.Value {
			t.Errorf("%v", got)
		}
	})
	t.Run("H4 bindings of one policy put their annotations together", func(t *testing.T) {
		got, dropped := annotationsOf(outcomes(4, func(i int, o *Outcome) {
			o.Webhook = &chain.Entry{ID: hook.ID{Configuration: "p", Name: fmt.Sprint("b", i)}, Audited: "p"}
			o.Response.Annotations = []codec.Annotation{{Key: "k", Value: fmt.Sprint(i / 2)}, {Key: strings.Repeat("k", 63), Value: "long"}}
			if i == 3 {
				o.Webhook = &chain.Entry{ID: hook.ID{Name: "p"}} // a webhook
			}
		}), "s")
		if len(got) != 5 || dropped != 0 || got[0] != (codec.Annotation{Key: "p.k", Value: "0, 1"}) || got[1].Value != "long" || !strings.HasPrefix(got[2].Key, "p.k.") || got[2].Value != "1" {
			t.Errorf("%v, %d dropped", got, dropped)
		}
	})
	t.Run("H4 so do the params of one binding", func(t *testing.T) {
		got, dropped := annotationsOf(outcomes(2, func(i int, o *Outcome) {
			o.Webhook = &chain.Entry{ID: hook.ID{Configuration: "p", Name: fmt.Sprint("b", i)}, Audited: "p"}
			o.Response.Annotations = []codec.Annotation{{Key: "k", Value: "0"}, {Key: "k", Value: fmt.Sprint(i + 1)}, {Key: "k", Value: "0"}}
		}), "s")
		if len(got) != 2 || dropped != 0 || got[0] != (codec.Annotation{Key: "p.k", Value: "0, 1, 2"}) {
			t.Errorf("%v, %d dropped", got, dropped)
		}
	})
	t.Run("C25 two webhooks of one name", func(t *testing.T) {
		got, dropped := annotationsOf(outcomes(3, func(i int, o *Outcome) {
			o.Webhook = &chain.Entry{ID: hook.ID{Name: "w.example.com", Configuration: fmt.Sprint("c", i)}}
			o.Response.Annotations = []codec.Annotation{{Key: "k", Value: fmt.Sprint(i)}}
		}), "s")
		values := map[string]string{}
		for _, a := range got[:3] {
			values[a.Value] = a.Key
		}
		if len(values) != 3 || dropped != 0 || values["0"] != "w.example.com.k" || !strings.HasPrefix(values["1"], "w.example.com.k.") || values["1"] == values["2"] {
			t.Errorf("%v, %d dropped", got, dropped)
		}
	})
	t.Run("C25 a webhook that is called again", func(t *testing.T) {
		w := &chain.Entry{ID: hook.ID{Name: "w.example.com"}}
		got, dropped := annotationsOf(outcomes(2, func(i int, o *Outcome) {
			o.Webhook, o.Round = w, i
			o.Response.Annotations = []codec.Annotation{{Key: "k", Value: fmt.Sprint(i)}, {Key: strings.Repeat("k", 63), Value: fmt.Sprint(i)}}
		}), "s")
		if len(got) != 4 || dropped != 2 || got[0].Value != "0" || got[1].Value != "0" {
			t.Errorf("%v, %d dropped", got, dropped)
		}
	})
	t.Run("C25 a key of 63 bytes, and of 64", func(t *testing.T) {
		prefix := len("w000.example.com.")
		got, _ := annotationsOf(outcomes(1, func(_ int, o *Outcome) {
			o.Response.Annotations = []codec.Annotation{{Key: strings.Repeat("k", 63-prefix)}, {Key: strings.Repeat("k", 64-prefix)}}
		}), "s")
		if got[0].Key != "w000.example.com."+strings.Repeat("k", 63-prefix) || len(got[1].Key) != 63 || got[1].Key[:54] != got[0].Key[:54] || got[1].Key[54] != '.' {
			t.Errorf("%v", got)
		}
	})
	t.Run("C25 1 KiB of our own, whole names", func(t *testing.T) {
		got, _ := annotationsOf(outcomes(100, func(_ int, o *Outcome) {
			o.Webhook.Name = "ü" + o.Webhook.Name
			o.Result, o.Cause = FailedOpen, hook.Timeout
		}), "s")
		if value := got[0].Value; got[0].Key != failOpenAnnotation || len(value) > 1024 || len(value) < 900 || !utf8.ValidString(value) || !strings.HasSuffix(value, " more") || strings.Count(value, ";")+1+number(value) != 100 {
			t.Errorf("%d bytes: %v", len(value), got[0])
		}
	})
}

// C18: the identity of an object is what a patch must not change.
func TestChangedIdentity(t *testing.T) {
	object := func() *codec.Object {
		return &codec.Object{APIVersion: []byte("v1"), Kind: []byte("Pod"), Namespace: []byte("shop"), UID: []byte("u")}
	}
	for name, c := range map[string]struct {
		change func(o *codec.Object)
		want   string
	}{
		"C18 nothing":    {func(*codec.Object) {}, ""},
		"C18 the name":   {func(o *codec.Object) { o.Name = []byte("other") }, ""},
		"C18 apiVersion": {func(o *codec.Object) { o.APIVersion = []byte("v2") }, "apiVersion"},
		"C18 kind":       {func(o *codec.Object) { o.Kind = nil }, "kind"},
		"C18 namespace":  {func(o *codec.Object) { o.Namespace = []byte("kube-system") }, "metadata.namespace"},
		"C18 uid":        {func(o *codec.Object) { o.UID = []byte("v") }, "metadata.uid"},
	} {
		t.Run(name, func(t *testing.T) {
			after := object()
			c.change(after)
			if got := changedIdentity(object(), after); got != c.want {
				t.Errorf("changed is %q, want %q", got, c.want)
			}
		})
	}
}

// number is how many are left out of a list that ends with that.
func number(list string) (n int) {
	_, _ = fmt.Sscanf(list[strings.LastIndex(list, " and "):], " and %d more", &n)
	return n
}
