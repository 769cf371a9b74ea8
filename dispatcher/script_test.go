// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// script is how one webhook of a story behaves, a line per command:
//
//	after 50ms             think that long
//	allow                  say yes
//	deny 403 some text     say no
//	warn TEXT              add a warning
//	annotate KEY TEXT      add an audit annotation
//	patch [OPERATIONS]     say yes, with a patch
//	raw JSON               answer this, with $UID replaced by the uid
//	error CAUSE TEXT       give no usable answer
//	panic                  blow up
type script struct {
	after    time.Duration
	response map[string]any
	raw      string
	err      error
	panics   bool
}

func parseScript(t *testing.T, name, text string) script {
	t.Helper()
	s := script{response: map[string]any{"allowed": true}}
	for line := range strings.Lines(text) {
		command, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := s.add(command, rest); err != nil {
			t.Fatalf("%s: %q: %v", name, line, err)
		}
	}
	return s
}

func (s *script) add(command, rest string) (err error) {
	first, text, _ := strings.Cut(rest, " ")
	switch command {
	case "", "allow", "#":
	case "after":
		s.after, err = time.ParseDuration(rest)
	case "deny":
		var code int
		code, err = strconv.Atoi(first)
		s.response["allowed"] = false
		s.response["status"] = map[string]any{"code": code, "message": text}
	case "warn":
		list, _ := s.response["warnings"].([]string)
		s.response["warnings"] = append(list, rest)
	case "annotate":
		notes, _ := s.response["auditAnnotations"].(map[string]string)
		if notes == nil {
			notes = map[string]string{}
		}
		notes[first] = text
		s.response["auditAnnotations"] = notes
	case "patch":
		s.response["patch"], s.response["patchType"] = []byte(rest), "JSONPatch"
	case "raw":
		s.raw = rest
	case "error":
		s.err = &hook.CallError{Cause: hook.Cause(first), Err: errors.New(text)}
	case "panic":
		s.panics = true
	default:
		err = errors.New("unknown command")
	}
	return err
}

// scriptedCaller answers for all webhooks of a story. A webhook's URL ends in its
// name.
type scriptedCaller struct {
	t        *testing.T
	scripts  map[string]script
	patience time.Duration // of who asks; 0: answers come by themselves

	mu    sync.Mutex
	count map[string]int
	calls []string
	uids  []string // that were sent
}

func (c *scriptedCaller) Start(_ context.Context, call transport.Call, to hook.Receiver) hook.Outstanding {
	s := c.begin(&call)
	if s.panics {
		panic("scripted")
	}
	call.Message.Retain()
	o := &scriptedAnswer{s, call, to, time.Now(), time.Now().Add(c.patience)}
	if c.patience == 0 || o.due.After(call.Deadline) {
		o.Leave()
		return nil
	}
	return o
}

// scriptedAnswer is an answer that is to be waited for.
type scriptedAnswer struct {
	script
	call  transport.Call
	to    hook.Receiver
	begin time.Time
	due   time.Time
}

func (o *scriptedAnswer) Due() time.Time { return o.due }

func (o *scriptedAnswer) Await() {
	if o.begin.Add(o.after).After(o.due) {
		<-time.After(time.Until(o.due))
		o.Leave()
		return
	}
	o.bring()
}

func (o *scriptedAnswer) Leave() { go o.bring() }

func (o *scriptedAnswer) bring() {
	resp, err := o.answer()
	answer(o.call, o.to, resp, err)
}

func (o *scriptedAnswer) answer() (codec.Response, error) {
	left := o.call.Deadline.Sub(o.begin)
	<-time.After(time.Until(o.begin.Add(min(o.after, left))))
	switch {
	case o.after >= left:
		return codec.Response{}, &hook.CallError{Cause: hook.Timeout, Elapsed: left, Err: fmt.Errorf("no answer within %v", left)}
	case o.err != nil:
		return codec.Response{}, o.err
	}
	want := o.call.Message.(*webhook.Message).Want
	resp, err := codec.Verify(o.body(want), want)
	if bad := (*codec.AnswerError)(nil); errors.As(err, &bad) && !bad.Denies {
		err = &hook.CallError{Cause: hook.BadAnswer, Err: err}
	}
	return resp, err
}

// begin notes the call with the object that it carries, and returns the script.
func (c *scriptedCaller) begin(call *transport.Call) script {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := path.Base(call.Target.URL())
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[name]++
	var sent struct {
		APIVersion string
		Request    struct {
			UID    string
			Object json.RawMessage
		}
	}
	message := call.Message.(*webhook.Message)
	if err := json.Unmarshal(message.Body.Bytes(), &sent); err != nil {
		c.t.Errorf("%s: the body sent is not JSON: %v", name, err)
	}
	if sent.Request.UID != string(message.Want.UID) {
		c.t.Errorf("%s: sent uid %q, expects %q", name, sent.Request.UID, message.Want.UID)
	}
	c.calls = append(c.calls, fmt.Sprintf("%s %s cluster=%s%s object=%s", name, sent.APIVersion, call.Cluster, c.uid(sent.Request.UID), sent.Request.Object))
	if s, ok := c.scripts[fmt.Sprintf("%s#%d", name, c.count[name])]; ok {
		return s
	}
	s, ok := c.scripts[name]
	if !ok {
		c.t.Errorf("webhook %s has no script", name)
	}
	return s
}

// uid is how a call tells that its uid is not that of the first one.
func (c *scriptedCaller) uid(uid string) string {
	i := slices.Index(c.uids, uid)
	if i < 0 {
		i = len(c.uids)
		c.uids = append(c.uids, uid)
	}
	if i == 0 {
		return ""
	}
	return fmt.Sprintf(" uid=another (%d)", i)
}

func (s script) body(want codec.Expectation) []byte {
	if s.raw != "" {
		return []byte(strings.ReplaceAll(s.raw, "$UID", string(want.UID)))
	}
	response := maps.Clone(s.response)
	response["uid"] = string(want.UID)
	body, err := json.Marshal(map[string]any{
		"apiVersion": want.Version.APIVersion(),
		"kind":       "AdmissionReview",
		"response":   response,
	})
	if err != nil {
		panic(err)
	}
	return body
}
