// SPDX-License-Identifier: Apache-2.0

package match

import (
	"math"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// ConflictsWith reports whether the two webhooks need registrations of their own.
// The API server sends a request as it is if any rule of a registration lists the
// form in which it came, and otherwise in the first other form that a rule lists.
// One registration with the rules of both webhooks therefore serves both only if,
// for every request that both want, they list the same forms in the same order.
// A webhook with matchPolicy Exact wants no other form than the one that came: what
// it lists must be listed by the other one too.
//
// Where the two have so many names that comparing them all would take long, they
// are taken to conflict: that costs a call, and no verdict.
func (m *Matcher) ConflictsWith(o *Matcher) bool {
	switch {
	case m.exact && o.exact, m.form != "" && m.form == o.form:
		return false
	case !slices.ContainsFunc(m.rules, func(r rule) bool { return slices.ContainsFunc(o.rules, r.mayDiffer) }):
		return false
	}
	return compare(m, o)
}

// IsExact reports whether matchPolicy is Exact.
func (m *Matcher) IsExact() bool { return m.exact }

// uniformForm returns what all rules have in common that decides on forms; "" if
// they differ.
func uniformForm(rules []rule) string {
	for i := range rules {
		if rules[i].form != rules[0].form {
			return ""
		}
	}
	if len(rules) == 0 {
		return ""
	}
	return rules[0].form
}

// formOf names the forms that the rule lists: its versions, and those of its groups
// in which a resource of it has an equivalent in another group. Rules of one form
// list, of every resource that both select, the same.
func formOf(r *rule) string {
	var groups []string
	switch {
	case r.groups.any:
		if slices.ContainsFunc(r.resources, func(p ResourcePattern) bool { return p.resource == wildcard || isCohabitant(p.resource) }) {
			groups = []string{wildcard}
		}
	default:
		for _, g := range r.groups.names {
			if slices.ContainsFunc(EquivalentResources(g), r.lists) {
				groups = append(groups, g)
			}
		}
	}
	return joined(r.versions) + "|" + strings.Join(sorted(groups), ",")
}

func isCohabitant(resource string) bool {
	all := cohabitants()
	return slices.ContainsFunc(all[:], func(c cohabitant) bool { return c.resource == resource })
}

// lists reports whether the rule selects the resource or a subresource of it.
func (r *rule) lists(resource string) bool {
	return slices.ContainsFunc(r.resources, func(p ResourcePattern) bool { return p.resource == wildcard || p.resource == resource })
}

func joined(s set) string {
	if s.any {
		return wildcard
	}
	return strings.Join(sorted(s.names), ",")
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// mayDiffer reports whether there may be requests that both rules want, in
// different forms. It is quick, and true too often.
func (r *rule) mayDiffer(o rule) bool {
	if r.form == o.form || !overlap(r.operations, o.operations) {
		return false
	}
	return slices.ContainsFunc(r.resources, func(p ResourcePattern) bool {
		return slices.ContainsFunc(o.resources, func(q ResourcePattern) bool {
			return (p.resource == wildcard || q.resource == wildcard || p.resource == q.resource) &&
				(p.sub == wildcard || q.sub == wildcard || p.sub == q.sub)
		})
	})
}

func overlap(a, b [codec.Connect + 1]bool) bool {
	for i := range a {
		if a[i] && b[i] {
			return true
		}
	}
	return false
}

// other stands for all names that no rule mentions.
const other = "\x00"

// names are those that the rules of two webhooks mention, and other.
type names struct{ groups, versions, resources, subs []string }

func namesOf(webhooks ...*Matcher) names {
	n := names{groups: []string{other}, versions: []string{other}, resources: []string{other}, subs: []string{other, ""}}
	for _, m := range webhooks {
		for i := range m.rules {
			r := &m.rules[i]
			n.groups = append(n.groups, r.groups.names...)
			n.versions = append(n.versions, r.versions.names...)
			for _, p := range r.resources {
				n.subs = append(n.subs, p.sub)
				if n.resources = append(n.resources, p.resource); p.resource == wildcard {
					for _, c := range cohabitants() {
						n.resources = append(n.resources, c.resource)
					}
				}
			}
			for _, e := range r.equivalentPatterns() {
				n.groups = append(n.groups, e.group)
			}
		}
	}
	for _, list := range []*[]string{&n.groups, &n.versions, &n.resources, &n.subs} {
		*list = slices.DeleteFunc(sorted(*list), func(s string) bool { return s == wildcard })
	}
	return n
}

// mostPlaces bounds what comparing two webhooks may cost.
const mostPlaces = 10_000

// compare looks at a representative of every kind of request.
func compare(a, b *Matcher) (conflict bool) {
	n := namesOf(a, b)
	if len(n.groups)*len(n.resources)*len(n.subs) > mostPlaces {
		return true
	}
	p := comparison{a: a, b: b, versions: n.versions}
	for _, group := range n.groups {
		for _, resource := range n.resources {
			if p.at(group, resource); a.knows(p.forms) && b.knows(p.forms) && slices.ContainsFunc(n.subs, p.differs) {
				return true
			}
		}
	}
	return false
}

// comparison compares two webhooks at one resource.
type comparison struct {
	a, b     *Matcher
	versions []string
	forms    []codec.GroupVersionResource // in which the API server may have the resource
	ranks    [2][]int
}

func (p *comparison) at(group, resource string) {
	groups := []string{group}
	if another, ok := EquivalentGroup(group, resource); ok {
		groups = append(groups, another)
	}
	p.forms = p.forms[:0]
	for _, g := range groups {
		for _, v := range p.versions {
			p.forms = append(p.forms, codec.GroupVersionResource{Group: []byte(g), Version: []byte(v), Resource: []byte(resource)})
		}
	}
}

// knows reports whether any rule lists the resource, in whatever version.
func (m *Matcher) knows(forms []codec.GroupVersionResource) bool {
	return slices.ContainsFunc(m.rules, func(r rule) bool {
		return slices.ContainsFunc(forms, func(f codec.GroupVersionResource) bool {
			return r.groups.has(f.Group) && r.lists(string(f.Resource))
		})
	})
}

func (p *comparison) differs(sub string) bool {
	namespaced := []byte("x")
	if f := &p.forms[0]; len(f.Group) == 0 && string(f.Resource) == namespacesResource {
		namespaced = nil // in every version
	}
	for operation := codec.Create; operation <= codec.Connect; operation++ {
		for _, namespace := range [][]byte{nil, namespaced} {
			q := request{operation: operation, sub: []byte(sub), namespace: namespace, anyName: true}
			p.ranks[0] = p.a.rank(p.ranks[0][:0], p.forms, q)
			p.ranks[1] = p.b.rank(p.ranks[1][:0], p.forms, q)
			if !agree(p.a, p.ranks[0], p.b, p.ranks[1]) {
				return true
			}
		}
	}
	return false
}

const unlisted = math.MaxInt

// rank appends, for each form, the position of the first rule that lists it, counted
// among the rules that are the first for any: 0 for the one preferred.
func (m *Matcher) rank(dst []int, forms []codec.GroupVersionResource, q request) []int {
	for i := range forms {
		q.resource = &forms[i]
		rank := m.indexOf(q, (*rule).selects)
		if rank < 0 {
			rank = unlisted
		}
		dst = append(dst, rank)
	}
	order := slices.Compact(slices.Sorted(slices.Values(dst)))
	for i, rank := range dst {
		if rank != unlisted {
			dst[i] = slices.Index(order, rank)
		}
	}
	return dst
}

// agree reports whether one registration gives both webhooks the forms that they
// would get by themselves.
func agree(a *Matcher, ofA []int, b *Matcher, ofB []int) bool {
	switch {
	case !wanted(ofA) || !wanted(ofB):
		return true
	case a.exact:
		return listsAll(ofB, ofA)
	case b.exact:
		return listsAll(ofA, ofB)
	case !slices.Contains(ofA, unlisted) && !slices.Contains(ofB, unlisted):
		return true // never converted
	}
	return slices.Equal(ofA, ofB)
}

func wanted(ranks []int) bool {
	return slices.ContainsFunc(ranks, func(r int) bool { return r != unlisted })
}

// listsAll reports whether what is listed in some is in all too.
func listsAll(all, some []int) bool {
	for i, rank := range some {
		if rank != unlisted && all[i] == unlisted {
			return false
		}
	}
	return true
}

// ConvertsAlike reports whether the order of the two rules can be changed in a
// registration without changing the form of any request.
func ConvertsAlike(a, b *admissionregistrationv1.RuleWithOperations) bool {
	x, y := compileRule(a, nil, true), compileRule(b, nil, true)
	return !x.mayDiffer(y)
}
