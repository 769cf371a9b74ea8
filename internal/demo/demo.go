// SPDX-License-Identifier: Apache-2.0

// Package demo runs the main job in one process with nothing to set up: a
// dispatcher with the manifests of examples/quickstart, sample webhooks, three
// clusters, and admissions played the way kube-apiserver sends them.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/app"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// Config is the configuration of a demo.
type Config struct {
	Stdout io.Writer // where the table goes
	Stay   bool      // after the table, until the context is done

	Version string // what the dispatcher says it is
}

// shadowPatience bounds the wait for Shadow calls, which nobody else waits for.
const shadowPatience = 5 * time.Second

// spanPatience bounds the wait for the spans of an admission.
const spanPatience = 8 * time.Second

// Run runs the demo. Its error tells that something did not go as expected.
func Run(ctx context.Context, cfg Config) (err error) {
	dir, err := os.MkdirTemp("", "dispatcher-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stage, err := newStage(dir)
	if err != nil {
		return err
	}
	defer stage.close()

	conf, problems := config.Load(stage.configFile)
	if len(problems) == 0 {
		_, problems, _ = registry.Validate(conf.Registry(nil, nil))
	}
	if len(problems) > 0 {
		return fmt.Errorf("the demo's own configuration is wrong: %v", problems)
	}
	logs, err := os.Create(stage.path("dispatcher.log"))
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }()
	stage.spans = new(tracing.Recorder)
	a, err := app.New(conf, app.Options{Version: cfg.Version, Logger: slog.New(slog.NewJSONHandler(logs, nil)), Spans: stage.spans})
	if err != nil {
		return err
	}
	stopping, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- a.Run(stopping) }()
	defer func() {
		stop()
		err = errors.Join(err, <-done)
	}()
	select {
	case <-a.Ready():
	case err := <-done:
		done <- nil
		return fmt.Errorf("the dispatcher did not start: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	}
	return stage.perform(ctx, cfg, a.Address().String(), a.AdminURL())
}

// perform plays everything, prints the table and what can be done next.
func (s *stage) perform(ctx context.Context, cfg Config, address, statusPage string) error {
	var rows []row
	wrong := 0
	for i, p := range plays() {
		r, err := s.play(ctx, address, p, fmt.Sprintf("demo-%d", i+1))
		if err != nil {
			return fmt.Errorf("%s: %w", p.about, err)
		}
		rows = append(rows, r)
		wrong += len(r.wrong)
	}
	printTable(cfg.Stdout, rows)
	if wrong > 0 {
		return fmt.Errorf("%d answers are not what is expected", wrong)
	}
	_, _ = fmt.Fprintf(cfg.Stdout, "\nAll %d admissions came out as expected.\n", len(rows))
	about, spans := s.longest(rows)
	printWaterfall(cfg.Stdout, about, spans)
	s.printNext(cfg.Stdout, address, statusPage, cfg.Stay)
	if cfg.Stay {
		<-ctx.Done()
	}
	return nil
}

// longest returns the trace of the admission that took longest.
func (s *stage) longest(rows []row) (about string, spans []tracing.Span) {
	i := 0
	for j := range rows {
		if rows[j].elapsed > rows[i].elapsed {
			i = j
		}
	}
	// Spans arrive in batches, some seconds after their end.
	for deadline := time.Now().Add(spanPatience); len(spans) == 0 && time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		spans = s.spans.Admission(rows[i].uid)
	}
	return rows[i].play.about, spans
}

// play asks once and compares.
func (s *stage) play(ctx context.Context, address string, p play, uid string) (row, error) {
	body, err := review(p.request, uid)
	if err != nil {
		return row{}, err
	}
	who := p.cluster
	if p.caller != "" {
		who = p.caller
	}
	c, err := s.caller(address, who)
	if err != nil {
		return row{}, err
	}
	defer c.close()
	begin := time.Now()
	got, err := c.ask(ctx, p.cluster, p.phase, body)
	if err != nil {
		return row{}, err
	}
	r := row{play: p, uid: uid, answer: got, elapsed: time.Since(begin), wrong: got.differences(p.want)}
	r.called = s.called(uid, len(p.want.called))
	if !slices.Equal(r.called, p.want.called) {
		r.wrong = append(r.wrong, fmt.Sprintf("webhooks called are %v, want %v", r.called, p.want.called))
	}
	return r, nil
}

// called returns who was asked about uid, once at least want of them were: a
// Shadow call may still be on its way when the answer is there.
func (s *stage) called(uid string, want int) []string {
	deadline := time.After(shadowPatience)
	for {
		asked := s.webhooks.askedAbout(uid)
		if len(asked) >= want {
			return asked
		}
		select {
		case <-deadline:
			return asked
		case <-time.After(time.Millisecond):
		}
	}
}
