// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// figures are all promises, in the order of the table, and where each comes from:
//
//   - proxied, throughput, collapse, telemetry, allocation, latency and scale start
//     the shipped binary, its peers and webhooks as processes of their own: stage.go,
//     and a file for each;
//   - benchmark runs Go benchmarks of a package: gobench.go;
//   - costs, hedging, goodput and so on run a test that prints what it measures:
//     printouts.go.
func figures() []figure {
	return slices.Concat(cpuFigures(), []figure{
		{"P3", "throughput, 3 webhooks, 8 callers", plain, atLeast(5, times).or(6), throughput{8}},
		{"P3", "throughput, 3 webhooks, 64 callers", plain, atLeast(5, times).or(6), throughput{64}},
		{"P3", "throughput, 3 webhooks, 256 callers", plain, atLeast(5, times).or(6), throughput{256}},
		{"P3", "throughput of 256 callers, of the peak", plain, atLeast(90, "%").or(95), collapse{}},
		{"P4", "the caller's CPU, 10 webhooks behind us", "1 called directly", atMost(1.3, times), costs("caller, to one called directly")},
		{"P4", "the caller's CPU, 10 webhooks behind us", "10 called directly", atMost(0.15, times), costs("caller, to ten called directly")},
		{"P4", "the caller's CPU and ours, 10 webhooks", "10 called directly", atMost(0.35, times).or(0.25), costs("caller and dispatcher, to ten called directly")},
		{"P5", "scan 6 KB", apimachinery, atLeast(20, times).or(60), scan("pod-6KB", "apimachinery")},
		{"P5", "scan 6 KB", "jsontext", atLeast(3, times).or(8), scan("pod-6KB", "jsontext")},
		{"P5", "allocations of a scan, 6 KB", "", atMost(0, allocs), benchmark{pkg: "codec", run: scanOf("pod-6KB"), ours: "Decode/pod-6KB/ours", unit: allocs}},
		{"P6", "scan a ConfigMap of 1 MB", "jsontext", atLeast(2.5, times).or(8), scan("configmap-1MB", "jsontext")},
		{"P6", "scan a CRD of 1 MB", "jsontext", atLeast(2.5, times).or(8), scan("crd-1MB", "jsontext")},
		{"P7", "protobuf envelope around JSON", "generated serializer", atLeast(10, times), faster("codec", "ProtobufEnvelope", "ours", "peer")},
		{"P7", "allocations of a protobuf envelope", "", atMost(0, allocs), benchmark{pkg: "codec", run: "^BenchmarkProtobufEnvelope$", ours: "ProtobufEnvelope/ours", unit: allocs}},
		{"P8", "verify a webhook's answer", apimachinery, atLeast(10, times), faster("codec", "Verify", "ours", "apimachinery")},
		{"P8", "allocations of a verification", "", atMost(1, allocs), benchmark{pkg: "codec", run: "^BenchmarkVerify$", ours: "Verify/ours", unit: allocs}},
		{"patch", "decode and apply 5 operations, 6 KB", jsonPatch, above(1, times), patch(6)},
		{"patch", "decode and apply 5 operations, 30 KB", jsonPatch, above(1, times), patch(30)},
		{"P9", "the process's allocations per admission, 5 webhooks", "", atMost(12, allocs).or(9), allocation{caller(5), mallocs, 1, allocs, allocs}},
		{"P9", "allocations, webhooks without selectors and conditions", "", atMost(12, allocs).or(9), allocation{bare(5), mallocs, 1, allocs, ""}},
		{"P9", "memory the process allocates per admission, 5 webhooks", "", atMost(2, "KiB").or(1), allocation{caller(5), allocated, 1 << 10, "KiB", "B/op"}},
		{"P9", "memory, webhooks without selectors and conditions", "", atMost(2, "KiB").or(1), allocation{bare(5), allocated, 1 << 10, "KiB", ""}},
		{"P9", "all telemetry's share of CPU, 5 webhooks", "telemetry off", atMost(10, "%"), telemetry{webhooks: 5}},
		{"P10", "match 5 of 10,000 webhooks", "5 of 10", atMost(1.5, times), benchmark{pkg: "match", run: "^BenchmarkMatch$", ours: "Match/5_of_10000", peer: "Match/5_of_10", unit: "ns/op"}},
		{"P11", "p99.9, 1 % of answers 1 s late", hedgingOff, atLeast(50, times), hedging("P11")},
		{"P11", "p99.9, 1 % of answers 1 s late", "delay + independent draw", atMost(2, times), theory("P11")},
		{"P11", "further attempts because of hedging", "", atMost(5, "%"), extraAttempts("P11")},
		{"F8", "p99.9, 1 % of answers 100 ms late", hedgingOff, atLeast(3, times), hedging("F8")},
		{"F8", "further attempts because of hedging", "", atMost(5, "%"), extraAttempts("F8")},
		{"P12", "goodput at 2 x the load that fits", "best of 1, 2, 5, 10 x", atLeast(90, "%"), goodput(2)},
		{"P12", "goodput at 5 x the load that fits", "best of 1, 2, 5, 10 x", atLeast(90, "%"), goodput(5)},
		{"P12", "goodput at 10 x the load that fits", "best of 1, 2, 5, 10 x", atLeast(90, "%"), goodput(10)},
		{"P12", "slowest answer to what is shed", "", atMost(20, "ms"), shedding()},
		{"P13", "p50 at half the peak", nginx, atMost(1.3, times).or(1.2), latency{quantile: 0.50}},
		{"P13", "p99 added at half the peak", "direct call", atMost(2, "ms"), latency{quantile: 0.99, added: true}},
		{"P14", "memory, 1,000 webhooks, 100 clusters", "", atMost(256, "MiB"), scale{memory}},
		{"P14", "reload of 1,000 webhooks, 100 clusters", "", atMost(2, "s"), scale{reloadTime}},
		{"P14", "compilation alone", "", atMost(2, "s"), benchmark{pkg: "registry/compile", run: "^BenchmarkCompile$", ours: "Compile", unit: "ns/op", per: 1e9, show: "s"}},
		{"P14", "p99 of calls during the reload", "without reload", atMost(2, times), scale{reloadLatency}},
		{"P15", "decoding in 5 webhooks, ProtobufNative", "JSON", atMost(0.3, times), decoding("ProtobufNative")},
		{"P15", "decoding in 5 webhooks, Protobuf", "JSON", atMost(1, times), decoding("Protobuf")},
	}, policyFigures())
}

// policyFigures are what policies in the process cost.
func policyFigures() []figure {
	const conformance, app = "conformance/policy", "internal/app"
	cpu := func(ours, peer string) benchmark {
		return benchmark{pkg: conformance, run: "^BenchmarkPolicy$", ours: "Policy/" + ours, peer: "Policy/" + peer, unit: "cpu-ns/op", per: 1e3, show: "us"}
	}
	held := func(ours, unit, show string) benchmark {
		return benchmark{pkg: "registry/compile", run: "^BenchmarkPolicies$", ours: ours, unit: unit, show: show}
	}
	return []figure{
		{"P19", "CPU of a policy of 5 validations, 6 KB", "kube-apiserver's validator", atMost(1, times), cpu("ours/1", "apiserver/1")},
		{"P19", "CPU of 10 policies of 5 validations each, 6 KB", "1 policy", atMost(3, times), cpu("ours/10", "ours/1")},
		{"P19", "CPU that a policy of 5 validations adds to an admission", "a webhook with the same", atMost(0.2, times),
			benchmark{pkg: app, run: "^BenchmarkInPlaceOfAWebhook$", ours: "InPlaceOfAWebhook", peer: "InPlaceOfAWebhook", unit: "policy-us/op", against: "webhook-us/op", show: "us"}},
		{"P19", "memory of 500 policies of 4 expressions", "", atMost(64, "MiB"), held("Policies", "MiB-held", "MiB")},
		{"P19", "policies compiled after a change of 1 of 500", "", atMost(1, "compiled"), held("Policies", "compiled/op", "compiled")},
	}
}

// cpuFigures are what an admission costs: against proxies, at saturation and at a
// steady rate.
func cpuFigures() []figure {
	one := contest{payload.PodCreate, []string{nginx, caller(1), floor, bare(1)}}
	large := contest{payload.DeploymentUpdate, []string{nginx, caller(1)}}
	five := contest{payload.PodCreate, []string{nginx, caller(5), caller(1)}}
	p1, p1large := proxied{in: one, ours: caller(1), peer: nginx}, proxied{in: large, ours: caller(1), peer: nginx}
	p1bare, p1floor := proxied{in: one, ours: bare(1), peer: nginx}, proxied{in: one, ours: caller(1), peer: floor}
	p2, further := proxied{in: five, ours: caller(5), peer: nginx}, proxied{in: five, ours: caller(5), peer: nginx, further: caller(1), beyond: 4}
	return []figure{
		{"P1", "CPU per admission, 1 webhook, 6 KB", nginx, atMost(1.5, times).or(1.35), p1},
		{"P1", "CPU per admission, 1 webhook, 6 KB" + atSteadyRate, nginx, goal{}, p1.at(steadyRate)},
		{"P1", "CPU per admission, 1 webhook, 18 KB", nginx, atMost(1.9, times).or(1.6), p1large},
		{"P1", "CPU per admission, 1 webhook, 18 KB" + atSteadyRate, nginx, goal{}, p1large.at(steadyRate)},
		{"P1b", "P1 bare: no selectors, no conditions, 6 KB", nginx, atMost(1.35, times).or(1.25), p1bare},
		{"P1b", "P1 bare: no selectors, no conditions, 6 KB" + atSteadyRate, nginx, goal{}, p1bare.at(steadyRate)},
		{"P1f", "CPU per admission, 1 webhook, 6 KB", floor, atMost(1.5, times).or(1.35), p1floor},
		{"P1f", "CPU per admission, 1 webhook, 6 KB" + atSteadyRate, floor, goal{}, p1floor.at(steadyRate)},
		{"P2", "CPU per admission, 5 webhooks, 6 KB", nginx, atMost(3.6, times).or(3.3), p2},
		{"P2", "CPU per admission, 5 webhooks, 6 KB" + atSteadyRate, nginx, goal{}, p2.at(steadyRate)},
		{"P2", "CPU of each further webhook, 6 KB", nginx, atMost(0.57, times).or(0.5), further},
		{"P2", "CPU of each further webhook, 6 KB" + atSteadyRate, nginx, goal{}, further.at(steadyRate)},
	}
}

// atSteadyRate follows what a figure is, where it is measured at that rate.
var atSteadyRate = ", at " + perSecond(steadyRate)

// Names of peers, units, benchmarks and metrics that several figures have.
const (
	nginx        = "nginx, 1 webhook"
	plain        = "plain net/http"
	floor        = "bare Go TLS proxy"
	apimachinery = "apimachinery"
	jsonPatch    = "json-patch.v4"
	hedgingOff   = "hedging off"
	mallocs      = "go_memstats_mallocs_total"
	allocated    = "go_memstats_alloc_bytes_total"
	allocs       = "allocs/op"
	fiveWebhooks = "^BenchmarkFiveWebhooks$"
)

func scanOf(name string) string {
	return "^BenchmarkDecode$/^" + name + "$"
}

// scan is how many times faster a review is decoded.
func scan(name, peer string) benchmark {
	return benchmark{pkg: "codec", run: scanOf(name), ours: "Decode/" + name + "/ours", peer: "Decode/" + name + "/" + peer, unit: "ns/op", gain: true}
}

// patch is how many times faster a patch is decoded and applied to a Pod of so
// many KB.
func patch(size int) benchmark {
	one := fmt.Sprintf("pod=%dKB/operations=5", size)
	return benchmark{
		pkg: "codec/jsonpatch", run: fmt.Sprintf("^BenchmarkApply$/^pod=%dKB$/^operations=5$", size),
		ours: "Apply/" + one + "/codec=ours", peer: "Apply/" + one + "/codec=v4", unit: "ns/op", gain: true,
	}
}

// faster is how many times faster one part of a benchmark is than the other.
func faster(pkg, name, ours, peer string) benchmark {
	return benchmark{pkg: pkg, run: "^Benchmark" + name + "$", ours: name + "/" + ours, peer: name + "/" + peer, unit: "ns/op", gain: true}
}

// decoding is what a Pod in a form costs the dispatcher and five webhooks.
func decoding(form string) benchmark {
	return benchmark{
		pkg: "codec/native", run: "^Benchmark(FiveWebhooks|AppendNative)$",
		ours: "FiveWebhooks/" + form, peer: "FiveWebhooks/JSON", unit: "ns/op", aside: decodingOf(form),
	}
}

// decodingOf tells the dispatcher's share and that of one webhook.
func decodingOf(form string) func([]metrics) string {
	return func(rounds []metrics) string {
		of := func(name string) string {
			return withUnit(spreadOf(column(rounds, "AppendNative/"+name, "ns/op", 1e3)), "us")
		}
		one := fmt.Sprintf("%s in each webhook, where JSON takes %s", of("webhook/"+form), of("webhook/JSON"))
		if form == "ProtobufNative" {
			return of("transcode") + " once in the dispatcher, " + one
		}
		return one
	}
}

// admission is the benchmark that has everybody in one process.
func admission(unit string, per float64, show string) benchmark {
	return benchmark{pkg: "internal/app", run: fiveWebhooks, ours: "FiveWebhooks", unit: unit, per: per, show: show}
}
