// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// notice is what people read about the outage.
func (o *outage) notice() Notice {
	n := Notice{
		Severity: o.severity(), Text: o.text(), Error: o.lastError(), Remedy: o.remedy(),
		Webhooks: o.names, Clusters: o.clusters,
	}
	switch o.is {
	case unresolved, down:
		n.Affects, n.Runbook = o.affects(), runbook("DispatcherTargetDown")
	case recovering:
		n.Affects, n.Runbook = "Calls above that fail as if it were down, until enough have been answered.", runbook("DispatcherBreakerOpen")
		if trying, all := o.recovering(); trying < all {
			n.Affects = "The other endpoints are called."
		}
	case degraded:
		n.Affects, n.Runbook = "The other endpoints are called.", runbook("DispatcherBreakerOpen")
	case failing:
		n.Affects = "It is called on; if calls go on failing, its circuit opens for the cluster or the resource."
	case notLookedUp:
		n.Affects = "The addresses of before are called."
	case openForClusters:
		n.Clusters = o.openClusters()
		n.Affects, n.Runbook = "Calls for them fail at once; all others are made.", runbook("DispatcherBreakerOpenForClusters")
	}
	return n
}

// severity is critical where admissions are decided without a webhook that should decide.
func (o *outage) severity() string {
	if o.is != unresolved && o.is != down {
		return warning
	}
	enforced := func(w *Webhook) bool { return w.Mode == "Enforce" }
	if len(o.webhooks) == 0 || slices.ContainsFunc(o.webhooks, enforced) {
		return critical
	}
	return warning
}

func (o *outage) text() string {
	endpoints, lost, width := 0, 0, 0
	for _, t := range o.targets {
		n, _ := t.conditions()
		endpoints += len(t.Endpoints)
		lost += n[transport.Ejected] + n[transport.Unreachable]
		for i := range t.Endpoints {
			width += t.Endpoints[i].Width
		}
	}
	switch o.is {
	case unresolved:
		return o.who() + " not callable: no address"
	case down:
		return fmt.Sprintf("%s not callable: no endpoint of %d answers%s", o.who(), endpoints, in(o.cause))
	case recovering:
		if trying, all := o.recovering(); trying < all {
			return fmt.Sprintf("%s recovering at %d of %s: %s at a time", o.who(), trying, Count(all, "endpoint"), Count(max(width, 1), "call"))
		}
		return fmt.Sprintf("%s recovering: %s at a time", o.who(), Count(max(width, 1), "call"))
	case degraded:
		return fmt.Sprintf("%s without %d of %s%s", o.who(), lost, Count(endpoints, "endpoint"), in(o.cause))
	case failing:
		return fmt.Sprintf("%s answering badly: the last call failed%s", o.who(), in(o.cause))
	case notLookedUp:
		return o.who() + " at a name that cannot be looked up"
	}
	return fmt.Sprintf("%s not called for %s", o.who(), listUpTo(shownNames, o.openFor()))
}

// recovering counts the endpoints that are, and all.
func (o *outage) recovering() (n, all int) {
	for _, t := range o.targets {
		conditions, _ := t.conditions()
		n, all = n+conditions[transport.Recovering], all+len(t.Endpoints)
	}
	return n, all
}

// in puts a cause behind a text.
func in(cause string) string {
	if cause == "" {
		return ""
	}
	return " (" + cause + ")"
}

// who begins the text: webhooks by name, or the Targets where none is known.
func (o *outage) who() string {
	switch {
	case len(o.names) > 0:
		return subject(o.names)
	case len(o.targets) == 1:
		return o.targets[0].URL + " is"
	}
	return fmt.Sprintf("%d targets are", len(o.targets))
}

// affects says what becomes of the admissions that the webhooks select.
func (o *outage) affects() string {
	if len(o.webhooks) == 0 {
		return "No webhook is served there now."
	}
	where := "in " + listUpTo(shownNames, o.clusters)
	if len(o.clusters) == 0 {
		where = "in no cluster"
	}
	var parts []string
	for _, effect := range []struct{ on, says string }{
		{Deny, "Denied %s: what %s %s."},
		{Allow, "Allowed with a warning %s, unchecked: what %s %s."},
		{Nothing, "Only recorded, in mode Shadow %s: what %s %s."},
	} {
		names := map[string]bool{}
		for _, w := range o.webhooks {
			if w.OnFailure == effect.on {
				names[w.Label()] = true
			}
		}
		if len(names) > 0 {
			verb := "select"
			if len(names) == 1 {
				verb = "selects"
			}
			parts = append(parts, fmt.Sprintf(effect.says, where, listUpTo(shownNames, sortedKeys(names)), verb))
		}
	}
	return strings.Join(parts, " ")
}

// lastError is the last error of the first Target that has one.
func (o *outage) lastError() string {
	var first string
	different := map[string]bool{}
	for _, t := range o.targets {
		text := t.LastErrorText()
		if text != "" {
			different[text] = true
			first = cmp.Or(first, text)
		}
	}
	if n := len(different) - 1; n > 0 {
		return fmt.Sprintf("%s (and %s)", first, Count(n, "other error"))
	}
	return first
}

// LastErrorText is the last error of the Target's lookup, or the newest of its Endpoints
// that are not healthy; "": there is none.
func (t *Target) LastErrorText() string {
	if text := cmp.Or(t.Unresolved, t.LookupError); text != "" {
		return text
	}
	var last *LastError
	for i := range t.Endpoints {
		e := &t.Endpoints[i]
		if e.LastError != nil && !e.Healthy() && (last == nil || e.LastError.Time.After(last.Time)) {
			last = e.LastError
		}
	}
	if last == nil {
		return ""
	}
	return last.Text
}

func (o *outage) openFor() (names []string) {
	for _, t := range o.targets {
		for i := range t.Endpoints {
			for _, c := range t.Endpoints[i].Circuits {
				if name := c.String(); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func (o *outage) openClusters() []string {
	names := map[string]bool{}
	for _, t := range o.targets {
		for i := range t.Endpoints {
			for _, c := range t.Endpoints[i].Circuits {
				names[c.Cluster] = true
			}
		}
	}
	return sortedKeys(names)
}

func (o *outage) remedy() string {
	switch o.is {
	case unresolved, notLookedUp:
		return "Check the host in clientConfig or in the WebhookBinding's endpoints, and DNS where the dispatcher runs."
	case recovering:
		return "Nothing has to be done: the circuit closes by itself."
	case openForClusters, failing:
		return "Look at the webhook's own log for what it makes of these reviews."
	}
	if o.cause == string(hook.TLS) {
		return "Check caBundle, or caFile of the WebhookBinding's endpoint, and the names and the end of the webhook's certificate."
	}
	return "Bring the webhook back: its process, its Service and the network policies on the way. The circuit closes by itself."
}
