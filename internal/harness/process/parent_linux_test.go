// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// The kernel ties a program's life to the thread that has started it, which is not
// the test's: that one may end first.
func TestTheThreadOfTheCallerEnds(t *testing.T) {
	var p *process.Process
	var lines <-chan string
	thread, elsewhere := make(chan int), make(chan struct{})
	var call func()
	call = func() {
		runtime.LockOSThread()                    // the thread ends with the goroutine
		if syscall.Gettid() == syscall.Getpid() { // but for the first of the process
			defer runtime.UnlockOSThread()
			go call()
			<-elsewhere
			return
		}
		defer close(thread)
		close(elsewhere)
		thread <- syscall.Gettid()
		p, lines = sh(t, `trap 'echo alive >&2' USR1; echo ready >&2; while :; do sleep 0.01; done`)
	}
	go call()
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	<-thread
	<-lines
	for {
		if _, err := os.Stat(task); err != nil {
			break
		}
	}
	p.Signal(syscall.SIGUSR1)
	select {
	case <-lines:
	case <-p.Exited():
		t.Error("it has ended with the thread")
	}
}
