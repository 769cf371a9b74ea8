// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// nothing is a Registry before its first load.
type nothing struct{}

func (nothing) Snapshot() *registry.Snapshot  { return nil }
func (nothing) Problems() []manifest.Problem  { return nil }
func (nothing) Targets() []*transport.Target  { return nil }
func (nothing) Draining() []*transport.Target { return nil }

func newCollector() *status.Collector {
	return status.New(status.Config{Version: "test", Registry: nothing{}, Unready: func() []string { return []string{"no configuration"} }})
}

const secret = "swordfish"

// record is an admission of pod name with these Outcomes, and a secret wherever
// there is something that must not be shown.
func record(name string, allowed bool, outcomes ...dispatcher.Outcome) *dispatcher.Record {
	review := &codec.Review{
		UID: []byte("u-" + name), Operation: codec.Create, Namespace: []byte("shop"), Name: []byte(name),
		Resource: codec.GroupVersionResource{Version: []byte("v1"), Resource: []byte("pods")},
		User:     codec.UserInfo{Username: []byte(secret), UID: []byte(secret), Groups: [][]byte{[]byte(secret)}},
		Object:   codec.Object{Raw: []byte(`{"data":"` + secret + `"}`)},
		Options:  []byte(secret),
	}
	for i := range outcomes {
		o := &outcomes[i]
		o.Webhook = &chain.Entry{ID: hook.ID{Configuration: "c", Name: fmt.Sprintf("w%d", i)}}
		o.Response.Message, o.Response.Warnings, o.Err = secret, []string{secret}, errors.New(secret)
	}
	return &dispatcher.Record{
		Request: dispatcher.Request{Review: review, Cluster: &chain.Cluster{Name: "east"}, Snapshot: "abc"},
		Verdict: &dispatcher.Verdict{Response: codec.Response{Allowed: allowed, Code: 403, Message: secret, Warnings: []string{secret}}, Outcomes: outcomes},
		Start:   time.Now(),
	}
}

// involved says who stands in a list, and for what.
func involved(list []status.Decision) string {
	var texts []string
	for _, d := range list {
		text := d.Name + ":"
		for _, w := range d.Webhooks {
			text += " " + strings.Trim(w.Webhook+"="+w.Result+"/"+w.Cause, "/")
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// unavailable says which calls failed beside denials.
func unavailable(list []status.Decision) (text string) {
	for _, d := range list {
		text += d.Name + ": "
		for _, w := range d.Unavailable {
			text += w.Webhook + "=" + w.Cause + " "
		}
	}
	return text
}

// Each list has the admissions that it is about, the newest first, with the
// webhooks that it is about.
func TestRecent(t *testing.T) {
	c := newCollector()
	for _, r := range []*dispatcher.Record{
		record("allowed", true, dispatcher.Outcome{}),
		record("bypassed", true),
		record("both", false, dispatcher.Outcome{Result: dispatcher.Denied}, dispatcher.Outcome{Result: dispatcher.FailedOpen, Cause: hook.Timeout}, dispatcher.Outcome{}),
		record("softened", true, dispatcher.Outcome{Result: dispatcher.Softened, Softened: true}),
		record("warned", true, dispatcher.Outcome{Result: dispatcher.FailedOpen, Softened: true, Cause: hook.TLS}),
		record("skipped", true, dispatcher.Outcome{Result: dispatcher.Skipped, Cause: hook.MatchError}),
		record("shed", false, dispatcher.Outcome{Result: dispatcher.Failed, Cause: hook.Shed}, dispatcher.Outcome{Result: dispatcher.FailedOpen, Cause: hook.Shed}),
		record("refused", false, dispatcher.Outcome{Result: dispatcher.Refused, Cause: hook.BadPatch}),
	} {
		c.Observe(t.Context(), r)
	}
	s := c.Status()
	for list, c := range map[string]struct{ got, want string }{
		"denials":     {involved(s.Denials), "refused: w0=refused/BadPatch; shed: w0=failed/Shed; both: w0=denied"},
		"failOpens":   {involved(s.FailOpens), "skipped: w0=skipped/MatchError; warned: w0=failed_open/TLS"},
		"unavailable": {unavailable(s.Denials), "refused: shed: w1=Shed both: w1=Timeout "},
		"sheds":       {involved(s.Sheds), "shed: w0=failed/Shed w1=failed_open/Shed"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", list, c.got, c.want)
		}
	}
	if counts := c.Counts("east"); counts.FailedOpen != 2 || counts.DeniedUnavailable != 2 || counts.Denied != 3 {
		t.Errorf("what others deny is not in: %+v", counts)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Errorf("the status tells a secret: %s", text)
	}
	if d := s.Denials[2]; d.Decision != "denied" || d.UID != "u-both" || d.Cluster != "east" || d.Phase != "validate" || d.Operation != "CREATE" || d.Resource != "pods" ||
		d.Namespace != "shop" || d.Code != 403 || d.Snapshot != "abc" || d.Allowed {
		t.Errorf("the denial is %+v", d)
	}
}

// What is kept is bounded: in number, and each name in length.
func TestRecentIsBounded(t *testing.T) {
	c := newCollector()
	long := strings.Repeat("é", 1000)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				c.Observe(t.Context(), record(fmt.Sprint(i), false, dispatcher.Outcome{Result: dispatcher.Denied}))
				_ = c.Status()
			}
		})
	}
	all.Wait()
	c.Observe(t.Context(), record(long, false, dispatcher.Outcome{Result: dispatcher.Denied}))
	s := c.Status()
	if len(s.Denials) != 100 {
		t.Errorf("%d denials are kept", len(s.Denials))
	}
	if n := len(s.Denials[0].Name); n > 253 || !strings.HasPrefix(long, s.Denials[0].Name) {
		t.Errorf("a name of %d bytes is kept: %q", n, s.Denials[0].Name)
	}
}

// A storm of one cluster displaces what it did itself, and what others did stays.
func TestRecentIsShared(t *testing.T) {
	c := newCollector()
	of := func(cluster string, times int) {
		for i := range times {
			r := record(fmt.Sprint(i), false, dispatcher.Outcome{Result: dispatcher.Denied})
			r.Cluster = &chain.Cluster{Name: cluster}
			c.Observe(t.Context(), r)
		}
	}
	of("quiet", 3)
	of("storm", 500)
	of("calm", 2)
	of("storm", 500)
	kept := map[string]int{}
	list := c.Status().Denials
	for _, d := range list {
		kept[d.Cluster]++
	}
	if kept["quiet"] != 3 || kept["calm"] != 2 || kept["storm"] != 95 {
		t.Errorf("kept are %v", kept)
	}
	if list[0].Name != "499" || list[len(list)-1].Cluster != "quiet" {
		t.Errorf("from %+v to %+v", list[0], list[len(list)-1])
	}
	for i := range 1000 {
		of(fmt.Sprint("c", i), 1)
	}
	if list := c.Status().Denials; len(list) != 100 || list[0].Cluster != "c999" {
		t.Errorf("%d are kept of a thousand clusters, the last of %s", len(list), list[0].Cluster)
	}
}

// A status has lists where there is nothing, not nulls.
func TestEmpty(t *testing.T) {
	s := newCollector().Status()
	v := reflect.ValueOf(s)
	for field, value := range v.Fields() {
		if value.Kind() == reflect.Slice && value.IsNil() {
			t.Errorf("%s is null", field.Name)
		}
	}
	if s.Ready || s.Snapshot != nil || len(s.Unready) != 1 {
		t.Errorf("ready %v, snapshot %v, unready %v", s.Ready, s.Snapshot, s.Unready)
	}
}

// Observing an admission that was simply allowed costs no memory.
func TestObserveAllocates(t *testing.T) {
	c := newCollector()
	r := record("allowed", true, dispatcher.Outcome{})
	c.Observe(t.Context(), r)
	if n := testing.AllocsPerRun(100, func() { c.Observe(t.Context(), r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
