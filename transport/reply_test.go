// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
)

// What a status says, at the edges.
func TestStatuses(t *testing.T) {
	for status, want := range map[int]struct {
		success bool
		kind    breaker.Kind
	}{
		199: {false, breaker.BadAnswer},
		200: {true, breaker.BadAnswer},
		206: {true, breaker.BadAnswer},
		207: {false, breaker.BadAnswer},
		399: {false, breaker.BadAnswer},
		400: {false, breaker.ClientError},
		429: {false, breaker.TooManyRequests},
		499: {false, breaker.ClientError},
		500: {false, breaker.ServerError},
		599: {false, breaker.ServerError},
	} {
		r := Reply{Status: status}
		if r.IsSuccess() != want.success || r.kind() != want.kind {
			t.Errorf("%d: success %v, kind %v", status, r.IsSuccess(), r.kind())
		}
	}
}

// A pause is as many seconds as it says, a minute at most, however many it says.
func TestPausesInSeconds(t *testing.T) {
	r := Reply{Status: http.StatusTooManyRequests}
	for _, seconds := range []int{0, 1, 59, 60, 61, math.MaxInt32, 18446744074, math.MaxInt / 2, math.MaxInt} {
		r.RetryAfter = strconv.AppendInt(nil, int64(seconds), 10)
		if got, want := r.pause(), time.Duration(min(seconds, 60))*time.Second; got != want {
			t.Errorf("%d seconds: a pause of %v, want %v", seconds, got, want)
		}
	}
}

// An error is no allow, whatever is beside it.
func TestErrorsAllowNothing(t *testing.T) {
	end := result{resp: codec.Response{Allowed: true}, err: errors.New("defective")}
	if end.allows() {
		t.Error("it allows")
	}
}

// Two Targets that differ in anything have two identities, wherever a field ends.
func TestIdentitiesAreUnambiguous(t *testing.T) {
	zeros := string(make([]byte, 8))
	specs := []TargetSpec{
		{},
		{URL: "a"},
		{ServerName: "a"},
		{BearerToken: "a"},
		{CABundle: []byte("x"), ClientCertificate: []byte("y" + zeros)},
		{CABundle: []byte("x" + zeros + "y")},
		{Endpoints: []EndpointSpec{{Address: "a"}}},
		{Endpoints: []EndpointSpec{{ServerName: "a"}}},
		{Endpoints: []EndpointSpec{{CABundle: []byte("a")}}},
		{Breaker: BreakerSpec{Off: true}},
	}
	known := map[Identity]int{}
	for i, s := range specs {
		if other, ok := known[s.Identity()]; ok {
			t.Errorf("%+v is %+v", s, specs[other])
		}
		known[s.Identity()] = i
	}
}

// A URL is https, a host and a path, and nothing else.
func TestTargetURLs(t *testing.T) {
	for _, url := range []string{"http://a/", "https:///b", "https://a/?b", "https://a/#b", "https://u@a/", "a/b", "https://a:b/", "%"} {
		if _, err := NewTarget(TargetSpec{URL: url}); err == nil {
			t.Errorf("%q is taken", url)
		}
	}
	if _, err := NewTarget(TargetSpec{URL: "https:///b", Endpoints: []EndpointSpec{{Address: "a:443"}}}); err == nil {
		t.Error("a URL without a host is taken")
	}
	for _, url := range []string{"https://a", "https://a:8443/b", "https://[::1]/b"} {
		if _, err := NewTarget(TargetSpec{URL: url}); err != nil {
			t.Error(err)
		}
	}
	for _, token := range []string{"a\r\nb", "a\x00"} {
		if _, err := NewTarget(TargetSpec{URL: "https://a/", BearerToken: token}); err == nil {
			t.Errorf("the token %q is taken", token)
		}
	}
}

// Of two random Endpoints the less busy one comes first, those to avoid come last.
func TestBalance(t *testing.T) {
	list := []*Endpoint{new(Endpoint), new(Endpoint), new(Endpoint)}
	for i, e := range list {
		e.outstanding.Store(int64(len(list) - i)) // the last one is the least busy
	}
	counts := map[int]int{}
	const runs = 3000
	for range runs {
		order := []*Endpoint{list[0], list[1], list[2]}
		balance(order, nil)
		for i, e := range list {
			if order[0] == e {
				counts[i]++
			}
		}
		balance(order, list[1:])
		if order[0] != list[0] {
			t.Fatal("an Endpoint to avoid comes first")
		}
	}
	// The last one is among the two in two of three cases, eight standard deviations
	// are 200; the first one never wins.
	if n := counts[2]; n < 1800 || n > 2200 || counts[0] > 0 {
		t.Errorf("the Endpoints came first so often: %v", fmt.Sprint(counts))
	}
}

// A Target without Endpoints chooses none, with a breaker or without.
func TestChooseFromNone(t *testing.T) {
	for _, off := range []bool{false, true} {
		target, err := NewTarget(TargetSpec{URL: "https://a/", Breaker: BreakerSpec{Off: off}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := target.choose("east", "pods", nil); ok || target.isReachable() {
			t.Error("there is one")
		}
	}
}

// An Endpoint can be reached unless its own circuit is open: on its way back, too.
func TestIsReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		is := func(state breaker.State, want bool) {
			t.Helper()
			if got := x.target.Endpoints()[0].Health().State; got != state || x.target.isReachable() != want {
				t.Errorf("it is %v, reachable %v; want %v, %v", got, x.target.isReachable(), state, want)
			}
		}
		is(breaker.Closed, true)
		for range 3 {
			x.call(Repeat{}, refused)
		}
		is(breaker.Open, false)
		<-time.After(2 * time.Minute)
		for range 50 {
			if x.call(Repeat{}, says(0, true)); x.target.Endpoints()[0].Health().State == breaker.Ramping {
				break
			}
		}
		is(breaker.Ramping, true)
	})
}
