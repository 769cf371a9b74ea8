// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/admission-dispatcher/dispatcher/loadtest/payload"

// figures are all promises, in the order of the table, and where each comes from:
//
//   - proxied, throughput, collapse and latency start the shipped binary, its
//     peers and webhooks as processes of their own: proxied.go, latency.go;
//   - benchmark runs Go benchmarks of a package: gobench.go;
//   - printed runs a test that measures and prints: printed.go.
func figures() []figure {
	return []figure{
		{"P1", "CPU of an admission, 1 webhook, 6 KB", nginx, atMost(1.15, times), proxied{review: payload.PodCreate, webhooks: 1}},
		{"P1", "CPU of an admission, 1 webhook, 18 KB", nginx, atMost(1.25, times), proxied{review: payload.DeploymentUpdate, webhooks: 1}},
		{"P2", "CPU of an admission, 5 webhooks, 6 KB", nginx + " to one", atMost(3.5, times), proxied{review: payload.PodCreate, webhooks: 5}},
		{"P2", "CPU of each webhook after the first, 6 KB", nginx + " to one", atMost(0.6, times), proxied{review: payload.PodCreate, webhooks: 5, further: true}},
		{"P3", "throughput, 3 webhooks, 8 callers", plain, atLeast(4, times), throughput{8}},
		{"P3", "throughput, 3 webhooks, 64 callers", plain, atLeast(4, times), throughput{64}},
		{"P3", "throughput, 3 webhooks, 256 callers", plain, atLeast(4, times), throughput{256}},
		{"P3", "throughput of 256 callers, of the peak", plain + ", of its own peak", atLeast(90, "%"), collapse{}},
	}
}

const (
	nginx = "nginx as TLS proxy"
	plain = "plain net/http dispatcher"
)
