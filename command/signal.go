// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends with the first SIGTERM or interrupt, or
// one of the others. The second one has its default action: the process ends at
// once.
func untilSignal(parent context.Context, others ...os.Signal) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, append(others, syscall.SIGTERM, os.Interrupt)...)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
		}
		// Before stop: once it shows that the first signal came, the second one must
		// not be swallowed. signal.NotifyContext has it the other way round.
		signal.Stop(signals)
		stop()
	}()
	return ctx, stop
}

// hangup is SIGHUP, as long as whoever started the process has not had it ignored
// (nohup): a terminal that is closed is then none of its business.
func hangup() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return nil
	}
	return []os.Signal{syscall.SIGHUP}
}

// on calls do at each such signal until stop.
func on(which os.Signal, do func()) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, which)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
				do()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
