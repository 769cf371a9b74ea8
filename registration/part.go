// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
)

// Limits of what an API server accepts and evaluates.
const (
	mostConditions = 64
	// longestExpression is in bytes; CEL reads 100,000 code points.
	longestExpression = 60_000
	// longestClaim is what webhooks that fail closed may need to say what they want;
	// beyond it they are taken to want everything that the part selects.
	longestClaim = 30_000
	// mostDivided is how many entries a phase may have because namespaceSelectors of
	// webhooks that fail closed differ, beside those that go by no label.
	mostDivided = 8
)

// part is the webhooks of one Path, which the API server can be told of together.
type part struct {
	phase       chain.Phase
	path        *chain.Path
	webhooks    []*chain.Entry
	matchPolicy admissionregistrationv1.MatchPolicyType
	rules       []admissionregistrationv1.RuleWithOperations
	namespaces  requirements // of namespaceSelectors, shared by all webhooks
	objects     requirements // of objectSelectors, likewise
	claims      []*claim
}

func partOf(list *chain.Chain, phase chain.Phase, path *chain.Path) (*part, error) {
	p := &part{phase: phase, path: path, matchPolicy: admissionregistrationv1.Exact}
	for _, position := range path.Positions {
		w := list.Webhooks[position]
		p.webhooks = append(p.webhooks, w)
		if !w.Matcher.IsExact() {
			p.matchPolicy = admissionregistrationv1.Equivalent
		}
	}
	p.rules = union(p.webhooks)
	if len(p.rules) == 0 {
		return nil, fmt.Errorf("%d webhooks have no rules: a registration without rules would switch them off", len(p.webhooks))
	}
	p.namespaces, p.objects = shared(p.webhooks, namespaceSelector), shared(p.webhooks, objectSelector)
	p.claims = p.claimsOf(p.webhooks)
	if ids := strings.Count(path.Segment, "."); ids > chain.MaxPathIDs {
		return nil, fmt.Errorf("the webhooks that must be registered apart are %d, at most %d fit a URL", ids, chain.MaxPathIDs)
	}
	return p, nil
}

// cell is a part of the requests, by the labels of their namespaces: together cells
// are all requests, and no request is in two.
type cell struct {
	name   string
	labels requirements
	where  string // a condition beside labels
	closed string // the condition under which a claim holds here
}

// cells divides the requests of a part so that in each cell the namespaceSelector
// of every claim holds or does not hold: labels of namespaces cannot be asked for
// in CEL. The complement of "r1 and r2" is "not r1" and "r1, and not r2".
// One cell, in which each claim is taken to hold, if there would be more than most
// entries.
//
// The API server reads a namespace's labels anew for each entry. Somebody who
// changes them all the time may slip between two cells, so that what is claimed
// whatever the labels are has a cell of its own, which goes by no label.
func (p *part) cells(most int) []cell {
	whole := cell{where: always, closed: p.claimed(func(*claim) bool { return true })}
	anywhere := p.claimed(func(c *claim) bool { return len(c.labels) == 0 })
	if anywhere == always {
		return []cell{whole}
	}
	var divided []cell
	for _, c := range p.claims {
		if len(c.labels) == 0 {
			continue
		}
		if divided == nil {
			divided = []cell{{where: always}}
		}
		if !slices.ContainsFunc(p.claims[:slices.Index(p.claims, c)], c.labelledAs) {
			divided = divide(divided, c.labels)
		}
		if 2*len(divided) > most {
			return []cell{whole}
		}
	}
	if len(divided) == 0 {
		return []cell{whole}
	}
	for i := range divided {
		divided[i].closed = p.claimed(func(c *claim) bool { return len(c.labels) > 0 && len(c.labels.without(divided[i].labels)) == 0 })
		if i > 0 {
			divided[i].name = fmt.Sprintf("-%d", i+1)
			// Cluster-scoped objects pass every namespaceSelector: the first cell has them.
			divided[i].where = anyOf(inNamespace, ofNamespaces)
		}
	}
	if p.phase == chain.Mutating && p.mayBeOfNamespaces() {
		// The labels of a Namespace may change from one entry to the next.
		for i := range divided {
			divided[i].where = allOf(divided[i].where, negation(ofNamespaces))
		}
		divided = append(divided, cell{name: "-namespaces", where: ofNamespaces, closed: whole.closed})
	}
	if anywhere == never {
		return divided
	}
	for i := range divided {
		divided[i].where = allOf(divided[i].where, negation(anywhere))
	}
	return append(divided, cell{name: "-anywhere", where: anywhere, closed: always})
}

func (c *claim) labelledAs(other *claim) bool {
	return slices.EqualFunc(c.labels, other.labels, sameRequirement)
}

// divide divides each cell by a conjunction of requirements. The first cell stays
// where all of them hold, even if no labels can: cluster-scoped objects are there.
func divide(cells []cell, by requirements) []cell {
	divided := []cell{{where: always, labels: cells[0].labels.and(by...)}}
	add := func(labels requirements) {
		if !labels.contradict() {
			divided = append(divided, cell{where: always, labels: labels})
		}
	}
	for i, c := range cells {
		if i > 0 {
			add(c.labels.and(by...))
		}
		for n, r := range by {
			add(c.labels.and(by[:n]...).and(complement(r)))
		}
	}
	return divided
}

func (rs requirements) and(more ...metav1.LabelSelectorRequirement) requirements {
	all := append(slices.Clone(rs), more...)
	slices.SortFunc(all, compareRequirements)
	return slices.CompactFunc(all, sameRequirement)
}

// contradict reports whether one of the requirements is the complement of another.
func (rs requirements) contradict() bool {
	return slices.ContainsFunc(rs, func(r metav1.LabelSelectorRequirement) bool { return rs.has(complement(r)) })
}

func (p *part) mayBeOfNamespaces() bool {
	return slices.ContainsFunc(p.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(r.Resources, func(s string) bool {
			name, _, _ := strings.Cut(s, "/")
			return name == "*" || name == "namespaces"
		})
	})
}

// entry is one webhook of the registration.
type entry struct {
	*part
	name          string
	failurePolicy admissionregistrationv1.FailurePolicyType
	namespaces    *metav1.LabelSelector
	conditions    []admissionregistrationv1.MatchCondition
}

// entries returns the entries of a part: each cell by what is claimed in it, one
// that fails closed and one that does not. Exactly one holds for each request.
func (p *part) entries(name string, cells []cell, bypass []admissionregistrationv1.MatchCondition, failOpen []exempt.Rule) ([]entry, error) {
	var entries []entry
	for _, c := range cells {
		closed := allOf(c.closed, negation(anyRequestRule(failOpen)))
		add := func(name string, policy admissionregistrationv1.FailurePolicyType, holds string) {
			e := entry{part: p, name: name, failurePolicy: policy, namespaces: p.namespaces.and(c.labels...).selector(), conditions: slices.Clone(bypass)}
			for _, condition := range []admissionregistrationv1.MatchCondition{{Name: "namespaces", Expression: c.where}, {Name: "fails-closed", Expression: holds}} {
				if condition.Expression != always {
					e.conditions = append(e.conditions, condition)
				}
			}
			entries = append(entries, e)
		}
		switch closed {
		case always:
			add(name+c.name, admissionregistrationv1.Fail, always)
		case never:
			add(name+c.name, admissionregistrationv1.Ignore, always)
		default:
			add(name+c.name, admissionregistrationv1.Fail, closed)
			add(name+c.name+"-open", admissionregistrationv1.Ignore, negation(closed))
		}
	}
	var errs []error
	for i := range entries {
		errs = append(errs, entries[i].check())
	}
	return entries, errors.Join(errs...)
}

// claimed is the text of what is claimed by any of some claims.
func (p *part) claimed(which func(*claim) bool) string {
	var some []string
	for _, c := range p.claims {
		if which(c) {
			some = append(some, c.text(p))
		}
	}
	if text := anyOf(some...); len(text) <= longestClaim {
		return text
	}
	return always
}

func anyRequestRule(rules []exempt.Rule) string {
	some := make([]string, len(rules))
	for i := range rules {
		some[i] = requestRule(&rules[i])
	}
	return anyOf(some...)
}

// check reports what an API server would not accept.
func (e *entry) check() error {
	if n := len(e.conditions); n > mostConditions {
		return fmt.Errorf("%s needs %d matchConditions, at most %d are accepted", e.name, n, mostConditions)
	}
	var errs []error
	for _, c := range e.conditions {
		if n := len(c.Expression); n > longestExpression {
			errs = append(errs, fmt.Errorf("matchCondition %s of %s has %d bytes, at most %d are evaluated reliably: shorten the bypass or failOpen rules", c.Name, e.name, n, longestExpression))
		}
	}
	return errors.Join(errs...)
}
