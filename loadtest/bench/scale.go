// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// The registry of figure P14.
const (
	manyWebhooks = 1000
	manyClusters = 100
	// scaleRate is in admissions a second: enough for a p99, and far from a peak.
	scaleRate = 500
)

// reload is what it is like to be served by a dispatcher with a large registry: a
// process of its own, on all cores, as its work is not on the path of calls.
type reload struct {
	seconds []float64         // each reload took
	quiet   [][]time.Duration // calls without a reload
	during  [][]time.Duration // calls during one
	memory  []float64         // resident, in MiB, after each
	started float64           // resident before the first
	live    float64           // MiB on the heap in the end, after a collection
}

// scale is one of the figures of a reload.
type scale struct{ of func(*reload) reading }

func (s scale) measure(l *lab) (reading, error) {
	r, err := remember(l, "reload of 1,000 webhooks for 100 clusters", l.reload)
	if err != nil {
		return reading{}, err
	}
	return s.of(r), nil
}

func reloadTime(r *reload) reading { return absolute(r.seconds, "s") }

func memory(r *reload) reading {
	got := absolute(r.memory, "MiB")
	got.remark = fmt.Sprintf("%s MiB before the first reload; in the end %s MiB are in use, and the rest is garbage and room for it", number(r.started), number(r.live))
	return got
}

func reloadLatency(r *reload) reading {
	var quiet, during []float64
	for i := range r.quiet {
		quiet = append(quiet, milliseconds(quantile(r.quiet[i], 0.99)))
		during = append(during, milliseconds(quantile(r.during[i], 0.99)))
	}
	return against(during, quiet, "ms")
}

func (l *lab) reload() (*reload, error) {
	s, err := l.stage()
	if err != nil {
		return nil, err
	}
	large, err := s.startLarge(l)
	if err != nil {
		return nil, err
	}
	defer large.Kill()
	w, err := l.lane(s, large, caller(1))
	if err != nil {
		return nil, err
	}
	r := &reload{}
	if r.started, err = large.resident(); err != nil {
		return nil, err
	}
	review := payload.PodCreate()
	if err := w.warmUp(&review, pacers, l.span); err != nil {
		return nil, err
	}
	took, err := s.change(l, large, 0) // without calls: how long the measurement has to be
	if err != nil {
		return nil, err
	}
	for n := range l.rounds {
		if err := l.reloadOnce(s, w, &review, r, n+1, max(took, l.span)); err != nil {
			return nil, err
		}
	}
	r.live, err = large.live(l)
	return r, err
}

// reloadOnce measures calls for a span, and again while the registry is read.
func (l *lab) reloadOnce(s *stage, w *lane, review *payload.Review, r *reload, n int, span time.Duration) error {
	quiet, err := w.pace(review, scaleRate, span)
	if err != nil {
		return err
	}
	type change struct {
		took time.Duration
		err  error
	}
	changed := make(chan change, 1)
	go func() {
		took, err := s.change(l, w.target, n)
		changed <- change{took, err}
	}()
	during, err := w.pace(review, scaleRate, span)
	c := <-changed
	if err := errors.Join(err, c.err); err != nil {
		return err
	}
	resident, err := w.resident()
	r.quiet, r.during = append(r.quiet, quiet), append(r.during, during)
	r.seconds, r.memory = append(r.seconds, c.took.Seconds()), append(r.memory, resident)
	return err
}

// startLarge starts a dispatcher with the large registry.
func (s *stage) startLarge(l *lab) (*target, error) {
	authority, err := json.Marshal(s.authority.PEM) // as caBundle has it
	if err != nil {
		return nil, err
	}
	var webhooks, clusters strings.Builder
	webhooks.WriteString("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: policy}\nwebhooks:\n")
	for i := range manyWebhooks {
		fmt.Fprintf(&webhooks, largeWebhook, i, s.webhooks, authority, i%50, resourceOf(i))
	}
	for i := range manyClusters {
		fmt.Fprintf(&clusters, largeCluster, caller(i+1), i+1, i%9+1, i%10, []string{"Enforce", "Warn", "Shadow"}[i%3])
	}
	if err := l.write("large/webhooks.yaml", []byte(webhooks.String())); err != nil {
		return nil, err
	}
	if err := l.write("large/clusters.yaml", []byte(clusters.String())); err != nil {
		return nil, err
	}
	if err := l.write("large.yaml", []byte(strings.Replace(processConfiguration, "registry", "large", 1))); err != nil {
		return nil, err
	}
	return l.startServe(serving{on: s.everywhere(), config: "large.yaml", environment: s.observed()})
}

// resourceOf is what a webhook is about: the first one about what is sent.
func resourceOf(webhook int) string {
	if webhook == 0 {
		return `apiGroups: [""], resources: [pods]`
	}
	return fmt.Sprintf(`apiGroups: [g%d.example.com], resources: [r%d]`, webhook%50, webhook)
}

// change changes the large registry, and returns how long it took until the new
// one was in use.
func (s *stage) change(l *lab, large *target, n int) (time.Duration, error) {
	large.Forget()
	if err := l.write("large/extra.yaml", fmt.Appendf(nil, extraCluster, n)); err != nil {
		return 0, err
	}
	began := time.Now()
	large.Signal(syscall.SIGHUP)
	_, err := large.Await(func(line string) string {
		var record struct{ Msg, Snapshot string }
		_ = json.Unmarshal([]byte(line), &record) // a line of another kind has none of these
		if record.Msg != "configuration loaded" {
			return ""
		}
		return record.Snapshot
	})
	return time.Since(began), err
}
