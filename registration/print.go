// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// YAML returns the registration as commented manifests, the same bytes each time.
func (r Registration) YAML(c *chain.Cluster) ([]byte, error) {
	var out bytes.Buffer
	comment(&out, fmt.Sprintf(`Registers the admission dispatcher in cluster %q. Made by: dispatcher registration
Make this again when the rules, selectors or failure policies of webhooks change,
or a bypass or failOpen rule.

rules: what any of an entry's webhooks selects, so that the API server converts
  objects for them and calls only when one of them cares.
url: which webhooks are considered. Those that list different versions or groups
  of one resource have entries of their own.
failurePolicy, the condition fails-closed: with the dispatcher down, what a webhook
  that fails closed wants is denied, and all else is not. Of two entries with one
  url, exactly one is called.
other matchConditions: the dispatcher's bypasses. They hold here too, so that this
  cluster can heal while the dispatcher is down.
namespaceSelector, objectSelector: what all of an entry's webhooks require.
reinvocationPolicy: Never, because the dispatcher runs the second round itself.`, c.Name))
	for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
		r.describe(&out, phase)
	}
	if r.unfilled {
		comment(&out, unfilled)
	}
	comment(&out, r.platform.notes(r))
	if c.Timeout == 0 {
		comment(&out, fmt.Sprintf(`
timeoutSeconds: %d is a guess. Set spec.timeoutSeconds of Cluster %s to what is
  registered here, so that answers are never late.`, int(defaultTimeout.Seconds()), c.Name))
	}
	var documents []any
	if r.Mutating != nil {
		documents = append(documents, r.Mutating)
	}
	if r.Validating != nil {
		documents = append(documents, r.Validating)
	}
	if len(documents) == 0 {
		comment(&out, "\nNo webhook serves this cluster: there is nothing to register.")
	}
	for i, document := range documents {
		if i > 0 {
			out.WriteString("---\n")
		}
		data, err := yaml.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("write the registration of cluster %s: %w", c.Name, err)
		}
		out.Write(data)
	}
	return out.Bytes(), nil
}

// mostNamed bounds how many webhooks of an entry a comment names.
const mostNamed = 50

// describe says which webhooks each entry of a phase carries.
func (r Registration) describe(out *bytes.Buffer, phase chain.Phase) {
	for i := range r.entries[phase] {
		e := &r.entries[phase][i]
		if i > 0 && e.part == r.entries[phase][i-1].part {
			continue
		}
		comment(out, fmt.Sprintf("\n%s%s, and the entries behind it with the same url:", e.name, webhookDomain))
		for n, w := range e.webhooks {
			if n == mostNamed {
				comment(out, fmt.Sprintf("  and %d more", len(e.webhooks)-n))
				break
			}
			comment(out, fmt.Sprintf("  %s/%s (%s)", w.Configuration, w.Name, policyOf(w)))
		}
	}
}

// policyOf is what a webhook's failure comes to.
func policyOf(w *chain.Entry) string {
	if w.Mode != chain.Enforce {
		return w.Mode.String()
	}
	return w.FailurePolicy.String()
}

func comment(out *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight("# "+line, " \n")
		out.WriteString(line + "\n")
	}
}
