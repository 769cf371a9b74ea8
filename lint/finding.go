// SPDX-License-Identifier: Apache-2.0

// Package lint finds webhook configurations that are valid and can still take a cluster
// down. It is pure: what it is given is all that it looks at, and what it is not given it
// does not judge. docs/lint.md has a section for each rule.
package lint

import (
	"cmp"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Level says how bad a Finding is.
type Level string

// The levels. An Error is an outage that waits for its day.
const (
	Warning Level = "warning"
	Error   Level = "error"
)

// Input is what is looked at. Only Configurations are needed.
type Input struct {
	Configurations []Configuration
	// Registry says that the dispatcher calls these webhooks: rules about how an API
	// server calls them do not apply.
	Registry bool
	// Exemptions are what the dispatcher calls none of these webhooks for. nil: nothing.
	Exemptions []Exemption
	// Trusted are the webhooks, as configuration/webhook, whose authorities are named
	// elsewhere than in caBundle.
	Trusted map[string]bool
	// Namespaces are the labels of the cluster's namespaces, by name. A namespace that
	// is not here has the label kubernetes.io/metadata.name only.
	Namespaces map[string]map[string]string
	// Services are those of the cluster. nil: unknown.
	Services map[ServiceName]Service
	// APIServices of the cluster that a Service in it serves.
	APIServices []APIService
	// Callers are the API groups of the callers that its Cluster lists. nil: unknown.
	Callers map[string]bool
	// Registered are the webhooks that the dispatcher calls for the cluster, as
	// configuration/webhook. nil: unknown.
	Registered map[string]bool
	// Generated is the registration that the cluster should have. nil: unknown.
	Generated []Configuration
	// Tier, if not nil, says that the dispatcher runs in this cluster.
	Tier *Tier
	// Now is when certificates are looked at; zero: they are not.
	Now time.Time
	// Compiler compiles matchConditions. nil: one of its own.
	Compiler *celenv.Compiler
}

// Configuration is a webhook configuration of either kind, with the API's defaults.
type Configuration struct {
	Object      string // Kind/name
	File        string // where it stands; may be empty
	Name        string
	Annotations map[string]string
	Mutating    bool
	Beta        bool // written as v1beta1
	Webhooks    []admissionregistrationv1.MutatingWebhook
}

// ServiceName names a Service of the cluster.
type ServiceName struct{ Namespace, Name string }

// Service is what is known of a Service.
type Service struct {
	Selector map[string]string // labels of its pods
	Ready    int               // endpoints
	// Counted says that Ready is known.
	Counted bool
}

// APIService is an API group and version that an extension API server serves.
type APIService struct {
	Name, Group string
	Service     ServiceName
}

// Tier is the dispatcher in the cluster.
type Tier struct {
	// Namespaces are its own and those of what it needs to start: certificates, DNS,
	// network, load balancer.
	Namespaces []string
}

// Finding is one thing that a rule found.
type Finding struct {
	Rule          *Rule
	Level         Level
	Configuration int         // index; -1: none of them
	Webhook       int         // index; -1: the configuration as a whole
	At            *field.Path // below the configuration; may be nil
	Value         string
	Text          string
	// Stops are the vital requests that an outage stops, of W1 and W8.
	Stops []string
}

// linter is one Check.
type linter struct {
	Input
	rule      *Rule
	webhooks  []*webhook
	witnesses map[string][]*witness // by version
	found     []Finding
}

// Check returns what the rules find, in the order of configurations, webhooks and rules.
func Check(in Input) []Finding {
	if in.Compiler == nil {
		in.Compiler = celenv.NewCompiler()
	}
	l := &linter{Input: in, witnesses: map[string][]*witness{}}
	for i := range in.Configurations {
		for j := range in.Configurations[i].Webhooks {
			l.webhooks = append(l.webhooks, l.webhook(i, j))
		}
	}
	rules := Rules()
	for i := range rules {
		l.rule = &rules[i]
		if l.rule.check == nil || in.Registry && !l.rule.registry {
			continue
		}
		l.rule.check(l)
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.Webhook, b.Webhook))
	})
	return l.found
}

// each calls check with the webhooks that the rule looks at. Those that are never called
// do no harm.
func (l *linter) each(check func(*webhook)) {
	for _, w := range l.webhooks {
		if !w.neutral && (!w.ours || l.rule.generated) {
			check(w)
		}
	}
}

// report adds a Finding about a webhook. What is an Error for one that fails closed is
// a Warning otherwise.
func (l *linter) report(w *webhook, level Level, at *field.Path, value, text string, stops ...string) {
	l.found = append(l.found, Finding{l.rule, level, w.configuration, w.index, at, value, text, stops})
}

// reportAll adds a Finding about all configurations together, or about none.
func (l *linter) reportAll(configuration int, level Level, value, text string) {
	l.found = append(l.found, Finding{l.rule, level, configuration, -1, nil, value, text, nil})
}
