// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/internal/demo"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// The demo checks itself; what is left to check is that it ends and leaves
// nothing running.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Config{Stdout: &out}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !bytes.Contains(out.Bytes(), []byte("All 16 admissions came out as expected.")) {
		t.Errorf("the demo says\n%s", out.String())
	}
}
