// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp's pools look for what is idle at intervals that nothing outside
		// can shorten, and end when they find nothing.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}
