// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends with the first SIGTERM or interrupt.
// The second one has its default action: the process ends at once.
func untilSignal(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
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

// onHangup calls reload at each SIGHUP until stop.
func onHangup(reload func()) (stop func()) {
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-hangups:
				reload()
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(done)
	}
}
