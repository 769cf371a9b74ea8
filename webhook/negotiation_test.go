// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// What a webhook said is taken back by an answer that does not say it.
func TestOffersAreTakenBack(t *testing.T) {
	now := time.Now()
	binary := saying("", "")
	binary.ContentType = []byte(codec.MediaTypeProtobuf)
	for _, row := range []struct {
		name    string
		answer  *transport.Reply
		verdict bool
		want    string
	}{
		{"a verdict that says nothing", saying("", ""), true, "JSON"},
		{"one that says less", saying("application/json", "gzip"), true, "JSON, gzip"},
		{"one in protobuf", binary, true, "ProtobufNative, zstd, gzip"},
		{"none, which may be a proxy's", saying("", ""), false, "ProtobufNative, zstd, gzip"},
		{"none that says a coding alone", saying("", "zstd"), false, "JSON, zstd"},
		{"none that says less", saying("application/json", "gzip"), false, "JSON, gzip"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := new(negotiation)
			all := saying(codec.MediaTypeProtobuf+";objects=native", "gzip, zstd")
			n.hear(all, true, at(now))
			s := n.hear(row.answer, row.verdict, at(now))
			lost := s != nil && s.Err != nil
			later := now.Add(2 * fallbackTime)
			if got := n.text(later); got != row.want || lost != (row.want != "ProtobufNative, zstd, gzip") || (s != nil) != lost {
				t.Errorf("%s, want %s; %+v", got, row.want, s)
			}
			if !lost {
				return
			}
			if n.offer == 0 && n.text(now) != "JSON" {
				t.Errorf("nothing is left to wait for, and Reads is %s", n.text(now))
			}
			if s := n.hear(all, true, at(now)); s != nil {
				t.Error("what was taken back is believed again at once")
			}
			if s := n.hear(all, true, at(later)); s == nil || s.Err != nil {
				t.Error("what was taken back is never believed again")
			}
		})
	}
}

// What does not hold is set aside, each time for longer until it holds.
func TestFallback(t *testing.T) {
	target, now := new(transport.Target), time.Now()
	n := negotiationOf(target)
	n.hear(saying(codec.MediaTypeProtobuf, ""), true, at(now))
	sent := func() codec.Encoding { return FormOf(target, codec.V1, Wire{}, 0, at(now)).Encoding }
	for _, want := range []time.Duration{fallbackTime, 2 * fallbackTime, 4 * fallbackTime, 8 * fallbackTime, 16 * fallbackTime, 32 * fallbackTime, maxFallbackTime, maxFallbackTime} {
		first, again := n.learn(transport.Misread, now) != nil, n.learn(transport.Misread, now) != nil
		wait := n.fallbackUntil.Sub(now)
		if wait != want || !first || again {
			t.Errorf("set aside for %v, want %v, for the first time %v, and again %v", wait, want, first, again)
		}
		if got := Reads(target, now); sent() != codec.JSON || !strings.HasPrefix(got, "JSON until ") || !strings.HasSuffix(got, ", then Protobuf") {
			t.Errorf("%v is sent while it is set aside, and Reads is %s", sent(), got)
		}
		if now = now.Add(wait); sent() != codec.Protobuf {
			t.Errorf("%v is sent later", sent())
		}
	}
	n.learn(transport.Read, now)
	if n.learn(transport.Misread, now); !n.fallbackUntil.Equal(now.Add(fallbackTime)) {
		t.Error("set aside for longer after it has held")
	}
}

// at is a clock that has stopped.
func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// As long as nothing was set aside and nothing changes, nobody asks what time it is.
func TestNegotiationNeedsNoClock(t *testing.T) {
	n, now := new(negotiation), time.Now()
	n.hear(saying(codec.MediaTypeProtobuf, "gzip"), true, at(now))
	clock := func() time.Time {
		t.Error("the clock is read")
		return now
	}
	n.reads(clock)
	n.hear(saying(codec.MediaTypeProtobuf, "gzip"), true, clock)
}
