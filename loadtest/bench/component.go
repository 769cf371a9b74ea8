// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// component is a part of what an admission costs.
type component string

// The components, in the order of the page.
const (
	kernelWrite component = "kernel: write"
	kernelRead  component = "kernel: read"
	encryption  component = "TLS"
	scheduler   component = "scheduler: netpoll, system call wrappers, channels, timers"
	handling    component = "HTTP server and handler"
	decode      component = "decode the review"
	conditions  component = "conditions"
	matching    component = "matching"
	dispatching component = "dispatch"
	calling     component = "calling: race, attempt, choice, breaker, HTTP client"
	verify      component = "verify the answers"
	encode      component = "encode"
	telemetric  component = "telemetry"
	memoryUse   component = "memory: allocation and garbage collection"
	rest        component = "rest"
)

func components() []component {
	return []component{
		kernelWrite, kernelRead, encryption, scheduler, handling, decode, conditions, matching, dispatching, calling,
		verify, encode, telemetric, memoryUse, rest,
	}
}

// ours begins the path of every package of the product.
const ours = "github.com/admission-dispatcher/dispatcher/"

// rule says what the functions with a prefix are there for.
type rule struct {
	component component
	prefix    string
}

// rules divide a profile. A sample belongs to the innermost function that a rule is
// about, and of several rules about that one to the first. What works for others,
// such as runtime.memmove, sync.Pool, bufio or the scanner of codec/json, has no rule,
// so that its time is its caller's. TestRules looks for rules that nothing needs, and
// for packages of the product that have none.
func rules() []rule {
	return []rule{
		// A profile has no frames of the kernel: its time is that of the wrapper.
		{kernelWrite, "syscall.write"},
		{kernelRead, "syscall.read"},
		{kernelRead, "syscall.recvfrom"},
		{encryption, "crypto/"},
		{memoryUse, "runtime.mallocgc"},
		{memoryUse, "runtime.newobject"},
		{memoryUse, "runtime.gc"},
		{memoryUse, "runtime.bgsweep"},
		{memoryUse, "runtime.wbBuf"},
		{scheduler, "runtime.mcall"},
		{scheduler, "runtime.gopark"},
		{scheduler, "runtime.ready"},
		{scheduler, "runtime.selectgo"},
		{scheduler, "runtime.chan"},
		{scheduler, "runtime.send"},
		{scheduler, "runtime.newstack"},
		{scheduler, "runtime.(*timer"},
		{scheduler, "runtime.entersyscall"},
		{scheduler, "runtime.reentersyscall"},
		{scheduler, "runtime.exitsyscall"},
		{scheduler, "time.(*Timer)"},
		{scheduler, "internal/poll."},
		{scheduler, "net."},
		{scheduler, ours + "internal/worker."},
		{conditions, ours + "internal/celenv."},
		{conditions, ours + "match.(*conditions)"},
		{matching, ours + "match."},
		{matching, ours + "exempt."},
		{verify, ours + "codec.Verify"},
		{encode, ours + "codec.Append"},
		{decode, ours + "codec.(*Review).Decode"},
		{dispatching, ours + "dispatcher."},
		{dispatching, ours + "dispatcher/overload."},
		{calling, ours + "hook."},
		{calling, ours + "webhook."},
		{calling, ours + "transport."},
		{calling, ours + "breaker."},
		{telemetric, "go.opentelemetry.io/"},
		{telemetric, ours + "internal/metrics."},
		{telemetric, ours + "internal/tracecontext."},
		{telemetric, ours + "internal/status."},
		{handling, ours + "internal/server."},
		{handling, "github.com/valyala/fasthttp.(*Server)"},
	}
}

// uncounted are the packages of the product that no rule is about, with the reason.
func uncounted() map[string]string {
	const (
		callers = "it works for whoever calls it, whose time that is"
		aside   = "it is not part of an admission"
		other   = "admissions of the profiled kind do not come here; those that do spend its caller's time"
	)
	return map[string]string{
		"api/v1alpha1":          aside,
		"lint":                  aside,
		"internal/mirrorstatus": aside,
		"codec/json":            callers,
		"chain":                 callers,
		"internal/tracing":      callers, // OpenTelemetry, which spans cost, has a rule
		"internal/crash":        callers,
		"internal/share":        callers,
		"internal/throttle":     callers,
		"internal/excerpt":      callers,
		"internal/objectpath":   callers,
		"internal/quantity":     callers,
		"codec/jsonpatch":       other,
		"policy":                other,
		"policy/schema":         other,
		"plugin":                other,
		"plugin/podsecurity":    other,
		"plugin/kubernetes":     other,
		"codec/native":          other,
		"internal/logging":      other,
		"internal/decisionlog":  other,
		"internal/trust":        other,
		"internal/otlp":         other,
		"internal/cgroup":       aside,
		"registry":              aside,
		"registry/manifest":     aside,
		"registry/compile":      aside,
		"registry/kube":         aside,
		"registration":          aside,
		"internal/admin":        aside,
		"internal/config":       aside,
		"internal/app":          aside,
		"internal/demo":         aside,
		"internal/harness/pki":  aside,
		"examples/quickstart":   aside,
		"webhookserver":         aside,
		"loadtest/history":      aside,
		"loadtest/load":         aside,
		"command":               aside,
		"cmd/dispatcher":        aside,
		"internal/jwt":          other, // and only for a token that is new
		"fleet":                 aside,
	}
}

// componentOf returns the component of a stack, and which rule says so: -1 if none
// does.
func (s *stack) componentOf(rules []rule) (component, int) {
	for _, frame := range s.frames {
		for i, r := range rules {
			if strings.HasPrefix(frame, r.prefix) {
				return r.component, i
			}
		}
	}
	return rest, -1
}
