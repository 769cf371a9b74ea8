// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Goroutines are kept, a few of them, until the pool is closed; Close waits for work.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int64
		gate := make(chan struct{})
		p := worker.Pool[int]{Idle: 2, Do: func(n int) { <-gate; done.Add(int64(n)) }}
		before := runtime.NumGoroutine()
		for range 2 {
			for range 5 {
				p.Run(1)
			}
			synctest.Wait()
			if n := runtime.NumGoroutine() - before; n != 5 {
				t.Errorf("%d goroutines do five pieces of work", n)
			}
			for range 5 {
				gate <- struct{}{}
			}
			synctest.Wait()
			if n := runtime.NumGoroutine() - before; n != 2 {
				t.Errorf("%d goroutines wait, 2 are kept", n)
			}
		}
		p.Run(1)
		go func() { gate <- struct{}{} }()
		if p.Close(); done.Load() != 11 {
			t.Errorf("closed when %d pieces of 11 were done", done.Load())
		}
		p.Close() // does nothing more
	})
}
