// SPDX-License-Identifier: Apache-2.0

package lint

import "strings"

// Rule is one rule. docs/lint.md has a section with its reasons.
type Rule struct {
	ID     string
	Level  Level // the worst that it reports
	Title  string
	Remedy string

	registry  bool          // holds for webhooks that the dispatcher calls
	generated bool          // looks at the dispatcher's own entries in a cluster, too
	check     func(*linter) // nil: who has what it needs reports by it
}

// Link is where the rule is documented.
func (r *Rule) Link() string { return documentation + "#" + strings.ToLower(r.ID) }

const documentation = "https://github.com/admission-dispatcher/dispatcher/blob/main/docs/lint.md"

// The rules that others report by.
const (
	CatchAll = "W2"
	Timeout  = "W5"
	Bypassed = "W13"
)

// Rules returns all rules, in order. What a rule says of the dispatcher's own entries
// differs where these only repeat what a webhook says that is registered with it: then
// the rule is about that webhook.
func Rules() []Rule { return append(outageRules(), registeredRules()...) }

// outageRules are about webhooks by themselves.
func outageRules() []Rule {
	return []Rule{
		{
			ID: "W1", Level: Error, Title: "an outage of the webhook stops what the cluster needs to heal",
			Remedy:   "leave these resources and kube-system out of rules and namespaceSelector, or set failurePolicy: Ignore",
			registry: true, generated: true, check: (*linter).vital,
		},
		{
			ID: CatchAll, Level: Warning, Title: "a rule selects everything",
			Remedy:   "name the groups, resources and operations that the webhook judges",
			registry: true, generated: true, check: (*linter).catchAll,
		},
		{
			ID: "W3", Level: Warning, Title: "fails closed in every namespace",
			Remedy:    "add a namespaceSelector that excludes kube-system and the webhook's own namespace by kubernetes.io/metadata.name",
			generated: true, check: (*linter).everywhere,
		},
		{
			ID: "W4", Level: Error, Title: "the webhook stands in the way of its own pods",
			Remedy:    "exclude the namespaces of webhooks by kubernetes.io/metadata.name in namespaceSelector",
			generated: true, check: (*linter).loops,
		},
		{
			ID: Timeout, Level: Warning, Title: "timeouts that are longer than a caller waits",
			Remedy: "set timeoutSeconds to what the webhook needs: 5 s is plenty, 3 s where leases are selected",
			check:  (*linter).timeouts,
		},
		{
			ID: "W6", Level: Warning, Title: "users can label themselves out",
			Remedy:   "exempt namespaces by kubernetes.io/metadata.name, and users or groups in matchConditions",
			registry: true, check: (*linter).exemptions,
		},
		{
			ID: "W7", Level: Error, Title: "the webhook cannot work, or will not for long",
			Remedy:   "see the text",
			registry: true, generated: true, check: (*linter).defects,
		},
	}
}

// registeredRules are about what a cluster or the dispatcher has registered.
func registeredRules() []Rule {
	return []Rule{
		{
			ID: "W8", Level: Error, Title: "what the cluster has registered does not fit the dispatcher",
			Remedy:    "apply what `dispatcher registration` prints now, and take away the direct registration of what the dispatcher calls",
			generated: true, check: (*linter).registered,
		},
		{
			ID: "W9", Level: Error, Title: "the cluster that hosts the dispatcher depends on it",
			Remedy:    "bypass the dispatcher's namespace and those that it needs to start, and apply the registration again",
			generated: true, check: (*linter).hosting,
		},
		{
			ID: "W10", Level: Warning, Title: "nobody can verify the webhook's certificate",
			Remedy:   "set clientConfig.caBundle, or caFile of a WebhookBinding's endpoint",
			registry: true, check: (*linter).unverifiable,
		},
		{
			ID: "W11", Level: Warning, Title: "a webhook without rules",
			Remedy:   "write down the rules that the webhook has where its controller runs, or remove it",
			registry: true, check: (*linter).ruleless,
		},
		{
			ID: "W12", Level: Warning, Title: "a controller changes the webhook in its own cluster",
			Remedy:   "write down here what the controller sets there, and again whenever that changes",
			registry: true, check: (*linter).rewritten,
		},
		{
			ID: Bypassed, Level: Warning, Title: "namespaces in which no webhook is called",
			Remedy:   "take the rule away (bypass.defaults: false, or spec.bypass.inherit: false of the Cluster) where a policy must hold there, and give its webhooks failurePolicy: Ignore there",
			registry: true,
		},
	}
}
