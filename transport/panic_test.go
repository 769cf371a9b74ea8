// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// A panic in an attempt is a CallError with the stack, and does not quote what it
// was about.
func TestPanicOfAnAttempt(t *testing.T) {
	const secret = "swordfish"
	r := race{ctx: t.Context(), Call: Call{Target: &Target{unspared: true}, Deadline: time.Now().Add(time.Minute)}}
	r.common = &common{exchange: func(*race, *try, extent) (result, bool) { panic(secret) }}
	end, done := r.attempt(&try{choice: choice{endpoint: &Endpoint{}}}, toListen)
	if !done {
		t.Fatal("it goes on")
	}
	call, ok := errors.AsType[*hook.CallError](end.err)
	if !ok || call.Cause != hook.Panic || !strings.Contains(string(call.Stack), "TestPanicOfAnAttempt") {
		t.Fatalf("%+v", end.err)
	}
	if text := call.Error(); strings.Contains(text, secret) || !strings.Contains(text, "a value of type string") {
		t.Errorf("it says %q", text)
	}
}
