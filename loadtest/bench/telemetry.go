// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/http"
	"time"
)

// unsampled is what every caller sends: the trace exists, and nobody wants it.
const unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

// startCollector serves whatever a process exports by OTLP, and forgets it.
func (l *lab) startCollector() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	go func() { _ = server.Serve(ln) }() // until it is closed
	l.atEnd(func() { _ = server.Close() })
	return "http://" + ln.Addr().String(), nil
}

// observed are the variables of a dispatcher with metrics, and with traces where
// the caller wants them.
func (s *stage) observed() []string {
	return []string{"OTEL_SDK_DISABLED=false", "OTEL_EXPORTER_OTLP_ENDPOINT=" + s.traces, "OTEL_TRACES_SAMPLER=parentbased_always_off"}
}

// unobserved are those of one that records nothing.
func (s *stage) unobserved() []string { return []string{"OTEL_SDK_DISABLED=true"} }

// telemetry is the share of an admission's CPU that goes into metrics and into
// traces that are not sampled: (on - off) / on, of two dispatchers that are alike
// but for the variable OTEL_SDK_DISABLED. Neither writes a decision log.
type telemetry struct{ webhooks int }

func (t telemetry) measure(l *lab) (reading, error) {
	s, err := l.stage()
	if err != nil {
		return reading{}, err
	}
	rounds, err := remember(l, "CPU with telemetry and without", func() ([][]round, error) {
		silent, err := l.startServe(serving{on: s.one, config: "dispatcher.yaml", environment: s.unobserved()})
		if err != nil {
			return nil, err
		}
		defer silent.Kill()
		return l.compare(s, t.webhooks, s.dispatcher, silent)
	})
	if err != nil {
		return reading{}, err
	}
	on, off := values(rounds[0], cpu), values(rounds[1], cpu)
	shares := quotients(off, on)
	for i := range shares {
		shares[i] = 100 * (1 - shares[i])
	}
	return reading{ours: on, peer: off, unit: "us", score: shares, remark: failures(rounds)}, nil
}
