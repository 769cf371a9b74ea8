// SPDX-License-Identifier: Apache-2.0

// Package importgraph tests who imports whom. A package may do what the two
// tables here say and nothing else; test files are exempt.
package importgraph

const module = "github.com/admission-dispatcher/dispatcher"

// anything stands for every package of the module.
const anything = "*"

// packages says which packages of the module a package may import.
func packages() map[string][]string {
	return map[string][]string{
		"codec/json":            {},
		"codec/jsonpatch":       {"codec/json"},
		"codec":                 {"codec/json"},
		"codec/native":          {"internal/quantity"},
		"internal/quantity":     {},
		"internal/celenv":       {"codec", "codec/json", "internal/quantity", "policy/schema"},
		"match":                 {"codec", "hook", "internal/celenv"},
		"internal/crash":        {},
		"internal/throttle":     {},
		"internal/share":        {},
		"internal/cgroup":       {},
		"internal/worker":       {},
		"internal/tracecontext": {},
		"breaker":               {},
		"hook":                  {"codec", "internal/celenv", "internal/crash", "internal/share", "internal/worker", "policy/schema"},
		"transport":             {"codec", "hook", "breaker", "internal/crash", "internal/worker", "internal/tracecontext"},
		"webhook":               {"codec", "hook", "transport"},
		"policy":                {"codec", "codec/jsonpatch", "hook", "match", "internal/celenv", "policy/schema"},
		"policy/schema":         {},
		// What is compiled in: an API for others, and what they make of it as a Hook.
		"plugin":             {"codec", "hook", "internal/crash", "internal/quantity"},
		"plugin/kubernetes":  {"plugin", "plugin/podsecurity", "internal/objectpath"},
		"plugin/podsecurity": {"plugin"},
		// The kinds, as others import them, too: apimachinery and k8s.io/api alone.
		"api/v1alpha1":      {},
		"exempt":            {"api/v1alpha1", "codec", "match"},
		"chain":             {"codec", "hook", "match", "exempt"},
		"registry/manifest": {"api/v1alpha1", "chain"},
		// celenv for the cache of compiled conditions, which outlives a Snapshot.
		"lint":             {"codec", "hook", "match", "internal/celenv", "exempt"},
		"registry/compile": {"lint", "api/v1alpha1", "codec", "hook", "webhook", "match", "exempt", "chain", "transport", "registry/manifest", "policy", "policy/schema", "plugin", "internal/celenv", "internal/trust", "internal/jwt"},
		// What needs the API of the cluster that the dispatcher runs in: the dispatcher has none of it.
		"mirror": {"api/v1alpha1", "chain", "registry/compile", "registry/manifest", "internal/mirrorstatus", "lint", "fleet"},
		// The file by which it tells the dispatcher how it is.
		"internal/mirrorstatus": {"api/v1alpha1", "registry/manifest"},
		"controller":            {"api/v1alpha1", "chain", "mirror", "registration"},
		"cmd/dispatcher-kube":   {"controller", "internal/config", "mirror", "plugin", "plugin/kubernetes", "registration", "adopt", "chain", "inventory", "lint", "registry", "registry/manifest", "fleet"},
		"registry":              {"chain", "transport", "registry/manifest", "registry/compile"},
		"internal/trust":        {},
		"registry/kube":         {"hook", "match", "chain", "registry/manifest", "policy/schema"}, // hook and match for the interfaces of sources
		"dispatcher/overload":   {"codec", "internal/share"},
		"dispatcher":            {"codec", "codec/jsonpatch", "match", "internal/crash", "internal/throttle", "chain", "exempt", "hook", "dispatcher/overload", "internal/tracecontext"},
		"internal/server":       {"internal/tracecontext", "dispatcher", "registry", "codec", "internal/crash", "internal/throttle", "internal/trust", "chain"},
		"inventory":             {"lint"},
		"adopt":                 {"api/v1alpha1", "lint", "registry/manifest"},
		// What there is to tell of a process, from everywhere that knows.
		"internal/status": {"breaker", "match", "registry", "registry/kube", "dispatcher", "chain", "registry/manifest", "transport", "webhook", "policy", "internal/mirrorstatus", "hook"},
		"internal/admin":  {"internal/status", "internal/mirrorstatus", "registry/manifest"},
		"internal/config": {"chain", "internal/server", "dispatcher", "dispatcher/overload", "registry", "internal/objectpath", "exempt", "internal/mirrorstatus", "registry/compile", "registry/manifest", "transport", "webhook", "internal/logging", "fleet"}, // types and defaults of its fields
		// How many replicas there are, and which cell a cluster is in: numbers and names.
		"fleet":            {},
		"internal/excerpt": {},
		"internal/otlp":    {"internal/excerpt", "internal/throttle"},
		"internal/metrics": {"internal/otlp", "internal/tracecontext", "internal/server", "hook", "dispatcher", "registry", "breaker", "chain", "transport", "internal/mirrorstatus"},
		"internal/tracing": {"internal/tracecontext", "internal/otlp", "internal/excerpt", "internal/throttle", "dispatcher"},
		"internal/logging": {"internal/share"},
		// logging for how long a sink is waited for.
		"internal/decisionlog": {"internal/logging", "internal/excerpt", "internal/objectpath", "internal/share", "codec", "dispatcher"},
		"internal/objectpath":  {},
		"internal/app":         {anything},
		"internal/harness/pki": {},
		"internal/jwt":         {},
		// It runs in other clusters, and knows nothing of what it forwards.
		"forward":                {},
		"cmd/dispatcher-forward": {"forward"},
		"internal/demo":          {"internal/app", "internal/config", "internal/harness/pki", "registry", "examples/quickstart", "webhookserver", "internal/tracing"},
		"examples/quickstart":    {},
		"registration":           {"match", "chain", "exempt"},
		// What the load tester, conformance and e2e share: nothing of the dispatcher.
		"internal/harness/scripted": {},
		// What conformance and e2e ask kube-apiserver and the dispatcher.
		"internal/harness/sample": {},
		// codec and dispatcher for explain, which reads a Review.
		"cmd/dispatcher": {"command"},
		"command":        {"lint", "internal/app", "internal/config", "internal/demo", "registration", "registry", "dispatcher", "codec", "loadtest/load", "loadtest/history", "internal/decisionlog", "internal/logging", "internal/otlp", "internal/status", "internal/mirrorstatus", "chain", "registry/compile", "registry/manifest", "plugin", "plugin/kubernetes", "internal/cgroup", "exempt", "fleet"},
		"webhookserver":  {}, // for webhook authors: it brings nothing of ours into their binaries
		"internal/tally": {},
		// What becomes of the files that public projects ship.
		"internal/projects": {"chain", "codec", "dispatcher", "registry", "registry/compile", "registry/manifest"},
		"internal/mutate":   {},
		"internal/corpus":   {},
		"dashboards":        {}, // its tests compare it with internal/metrics
		// It judges the dispatcher, so it shares nothing with it.
		"loadtest/history": {},
		"loadtest/load":    {"loadtest/history"},
		"loadtest/script":  {"loadtest/history", "internal/harness/scripted"},
		// who means harm to the dispatcher, in the matrix
		"loadtest/adversary":       {"loadtest/load"},
		"loadtest/proxy":           {},
		"loadtest/zone":            {},
		"loadtest/payload":         {},
		"internal/harness/process": {},
		// What the fuzz targets of scanners run on, in tests only.
		"internal/harness/pooled": {},
		"internal/harness/fuzz":   {},
		// What tests of manifests have in common.
		"internal/harness/manifests": {},
		"loadtest/replica":           {},
		// The naive peer of the benchmarks: nothing of ours is in it.
		"loadtest/plain": {},
		// The least that any peer can cost.
		"loadtest/floor": {},
		// It starts binaries, and sees of them what anybody could.
		"loadtest/bench": {"loadtest/payload", "internal/harness/pki", "internal/harness/process"},
	}
}

// modules says which packages may import a foreign module, or the packages of
// one below a path. A foreign API has few homes, so that it can be replaced.
func modules() map[string][]string {
	return map[string][]string{
		"github.com/google/go-cmp":                  {"internal/harness/manifests"},
		"github.com/rogpeppe/go-internal":           {"internal/harness/manifests"},
		"github.com/klauspost/compress":             {"codec", "webhookserver"},
		"github.com/valyala/fasthttp":               {"internal/server", "loadtest/load", "loadtest/bench", "transport"},
		"github.com/HdrHistogram/hdrhistogram-go":   {"loadtest/load", "transport"},
		"golang.org/x/net":                          {"loadtest/zone", "forward"},
		"github.com/golang-jwt/jwt":                 {"internal/jwt"},
		"github.com/a-h/templ":                      {"internal/admin"},                           // escapes by construction, and needs no reflection
		"golang.org/x/crypto/x509roots":             {"cmd/dispatcher", "cmd/dispatcher-forward"}, // a library must not choose for its user's binary
		"github.com/spf13/cobra":                    {"command"},
		"github.com/spf13/pflag":                    {"command"},
		"github.com/google/cel-go":                  {"internal/celenv"},
		"k8s.io/apiserver/pkg/apis/cel":             {"internal/celenv"},
		"k8s.io/apiserver/pkg/cel":                  {"internal/celenv"},
		"k8s.io/apiserver/pkg/admission/plugin/cel": {"internal/celenv"},
		"k8s.io/apiserver/pkg/authentication/user":  {"internal/celenv"},

		"k8s.io/apiserver/pkg/authorization/authorizer": {"internal/celenv"},
		"k8s.io/api":                           {"lint", "internal/projects", "api/v1alpha1", "internal/harness/sample", "hook", "chain", "internal/celenv", "match", "registration", "internal/demo", "webhookserver", "loadtest/plain", "codec/native", "internal/status", "policy", "registry/kube", "registry/compile", "registry/manifest", "plugin", "plugin/kubernetes", "plugin/podsecurity", "controller", "adopt", "cmd/dispatcher-kube"},
		"k8s.io/apimachinery":                  {"lint", "internal/projects", "internal/quantity", "api/v1alpha1", "internal/harness/sample", "hook", "chain", "internal/celenv", "match", "registry/kube", "registration", "internal/config", "internal/demo", "webhookserver", "loadtest/plain", "codec/native", "internal/status", "exempt", "policy", "policy/schema", "registry/compile", "registry/manifest", "plugin", "plugin/kubernetes", "plugin/podsecurity", "mirror", "controller", "inventory", "adopt", "cmd/dispatcher-kube", "command"},
		"k8s.io/pod-security-admission":        {"plugin/podsecurity"},
		"k8s.io/client-go":                     {"registry/kube", "mirror", "controller", "cmd/dispatcher-kube", "inventory"},
		"k8s.io/klog":                          {"registry/kube", "mirror"}, // to keep client-go silent
		"golang.org/x/sys":                     {"loadtest/bench"},          // to pin processes
		"sigs.k8s.io/json":                     {"internal/jwt", "internal/config", "codec/native", "registry/kube", "registry/manifest", "plugin"},
		"golang.org/x/term":                    {"command"},
		"sigs.k8s.io/structured-merge-diff":    {"policy/schema"},
		"sigs.k8s.io/yaml":                     {"mirror", "adopt", "codec", "registration", "internal/config", "registry/manifest"},
		"go.opentelemetry.io/otel":             {"internal/otlp"},
		"go.opentelemetry.io/otel/attribute":   {anything}, // the API
		"go.opentelemetry.io/otel/codes":       {anything},
		"go.opentelemetry.io/otel/metric":      {anything},
		"go.opentelemetry.io/otel/propagation": {anything},
		"go.opentelemetry.io/otel/trace":       {anything},
		"go.opentelemetry.io/otel/sdk":         {"internal/metrics", "internal/otlp", "internal/tracing"},
		"go.opentelemetry.io/otel/exporters":   {"internal/metrics", "internal/otlp"},
		"go.opentelemetry.io/contrib/bridges":  {"internal/metrics"},
		"github.com/prometheus/client_golang":  {"internal/metrics", "forward"},
		"github.com/go-logr/logr":              {"internal/otlp"}, // to keep OpenTelemetry and gRPC
		"google.golang.org/grpc":               {"internal/otlp"}, // off standard error
	}
}

// guarded are packages that the binary must not contain, by whatever way, with
// those below them.
func guarded() map[string]string {
	return map[string]string{
		"k8s.io/client-go/dynamic":                              "whoever can write objects with it is dispatcher-kube",
		"k8s.io/client-go/kubernetes":                           "the typed clientset costs 22 MB: use metadata and tools/cache",
		"sigs.k8s.io/controller-runtime":                        "it brings the typed clientset and a life cycle of its own",
		"k8s.io/apiserver/pkg/admission/plugin/policy":          "it brings client-go and a registry of metrics: it is the oracle of policy, for tests only",
		"k8s.io/client-go/informers":                            "it brings the typed clientset",
		"k8s.io/apiserver/pkg/admission/plugin/webhook/request": "it brings client-go",
		"k8s.io/apiserver/pkg/admission/plugin/webhook/generic": "it brings client-go",
		"k8s.io/pod-security-admission/admission":               "it brings the typed clientset: it is the oracle of plugin/podsecurity",
		"k8s.io/apiserver/pkg/util/webhook":                     "it brings client-go: we call webhooks over fasthttp",
		"gopkg.in/evanphx/json-patch.v4":                        "it is the oracle of codec/jsonpatch, for tests only",
		"github.com/go-jose/go-jose":                            "it is the oracle of internal/jwt, for tests only",
		"github.com/go-json-experiment/json":                    "it is the oracle of codec, for tests only",
	}
}

// maxBinary is the size in bytes that the stripped binary stays under. It had 40.3 MB
// when this was set. What calls a method by a name that is not a constant, as
// text/template does, keeps every exported method in the binary: that costs 10.2 MB,
// and this notices it. Any other excess is a dependency, and a decision.
const maxBinary = 42_000_000
