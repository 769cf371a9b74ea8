// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// A ring is the end of the list of all that was added.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		all := rapid.SliceOf(rapid.Int()).Draw(t, "all")
		r := newRing[int](size)
		for _, v := range all {
			r.add(v)
		}
		want := all[max(0, len(all)-size):]
		if got := r.oldestFirst(); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		newest := slices.Clone(want)
		slices.Reverse(newest)
		if got := r.newestFirst(); !slices.Equal(got, newest) {
			t.Errorf("%v, want %v", got, newest)
		}
	})
}

// A Target keeps the samples of ten minutes for as long as it is there.
func TestSamples(t *testing.T) {
	target, err := transport.NewTarget(transport.TargetSpec{URL: "https://w.example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	var l latencies
	start := time.Now()
	for i := range 70 {
		l.sample(start.Add(time.Duration(i)*sampleInterval), []*transport.Target{target})
	}
	samples := l.of(target)
	if len(samples) != 60 || !samples[0].Time.Equal(start.Add(10*sampleInterval)) {
		t.Errorf("%d samples from %v", len(samples), samples[0].Time)
	}
	l.sample(start, nil)
	if samples := l.of(target); samples == nil || len(samples) != 0 {
		t.Errorf("after the Target has left: %v", samples)
	}
}

// A Hook that is a function of this process is shown without a Target.
func TestHookWithoutTarget(t *testing.T) {
	w := newWebhook(&chain.Entry{ID: hook.ID{Configuration: "policies", Name: "own"}, Hook: hook.Local(nil)}, chain.Validating)
	if w.Name != "own" || w.Target != "" {
		t.Errorf("%+v", w)
	}
}

// The mode decides what comes of a failed call, then the failure policy.
func TestOnFailureOfEntry(t *testing.T) {
	for _, c := range []struct {
		mode   chain.Mode
		policy chain.FailurePolicy
		want   string
	}{
		{chain.Enforce, chain.Fail, Deny}, {chain.Enforce, chain.Ignore, Allow}, {chain.Warn, chain.Fail, Allow},
		{chain.Warn, chain.Ignore, Allow}, {chain.Shadow, chain.Fail, Nothing}, {chain.Shadow, chain.Ignore, Nothing},
	} {
		w := newWebhook(&chain.Entry{Hook: hook.Local(nil), Mode: c.mode, FailurePolicy: c.policy}, chain.Validating)
		if w.OnFailure != c.want {
			t.Errorf("%v, %v: %s", c.mode, c.policy, w.OnFailure)
		}
	}
}

// The text of an error is one line of a bounded length, and quotes no webhook.
func TestLastError(t *testing.T) {
	at := time.Unix(1, 0)
	got := newLastError(&transport.Trouble{At: at, Err: &hook.CallError{Cause: hook.TLS, Err: errors.New("a\nb\x1b[31m" + strings.Repeat("é", 200))}})
	if got.Cause != "TLS" || !got.Time.Equal(at) || !strings.HasPrefix(got.Text, "a b [31m") || len(got.Text) > maxError+3 || !utf8.ValidString(got.Text) {
		t.Errorf("%+v", got)
	}
	if got := newLastError(&transport.Trouble{Err: &hook.CallError{Cause: hook.BadAnswer, Err: errors.New("secret")}}); strings.Contains(got.Text, "secret") {
		t.Errorf("%+v", got)
	}
	if newLastError(nil) != nil {
		t.Error("there is none")
	}
}
