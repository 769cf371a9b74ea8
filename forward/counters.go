// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are few: what is decided is counted by the dispatcher.
type metrics struct {
	requests *prometheus.CounterVec
	handler  http.Handler
}

func newMetrics(files *watched, slots chan struct{}) *metrics {
	m := &metrics{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dispatcher_forward_requests_total",
		Help: "Requests by outcome: answered by the dispatcher, or why not.",
	}, []string{"outcome"})}
	for _, o := range outcomes() {
		m.requests.WithLabelValues(string(o))
	}
	expiry := func(which string, of func(*generation) *tls.Certificate) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "dispatcher_forward_certificate_expiry_timestamp_seconds",
			Help:        "When a certificate expires, in seconds since 1970.",
			ConstLabels: prometheus.Labels{"certificate": which},
		}, func() float64 { return float64(of(files.current.Load()).Leaf.NotAfter.Unix()) })
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		m.requests,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "dispatcher_forward_requests_in_flight",
			Help: "Requests that are being forwarded.",
		}, func() float64 { return float64(len(slots)) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "dispatcher_forward_certificate_failures_total",
			Help: "Times that changed certificate files were refused; the last good ones stay.",
		}, func() float64 { return float64(files.failures.Load()) }),
		expiry("serving", func(g *generation) *tls.Certificate { return &g.serving }),
		expiry("client", func(g *generation) *tls.Certificate { return &g.client }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}
