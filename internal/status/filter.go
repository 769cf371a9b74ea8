// SPDX-License-Identifier: Apache-2.0

package status

import (
	"path"
	"slices"
	"strings"
)

// Filter selects what a Status shows. A pattern is a name, a part of it in any case, or a
// glob; empty: everything.
type Filter struct {
	Cluster string
	Webhook string // of configuration/name
}

// IsEmpty reports whether nothing is left out.
func (f Filter) IsEmpty() bool { return f == Filter{} }

// matches reports whether the pattern selects a name.
func matches(pattern, name string) bool {
	if strings.ContainsAny(pattern, "*?[") {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	return strings.Contains(strings.ToLower(name), strings.ToLower(pattern))
}

// narrowed returns pattern as something that selects one name alone where it is one.
func narrowed(pattern string, is func(name string) bool) func(name string) bool {
	switch {
	case pattern == "":
		return func(string) bool { return true }
	case is(pattern):
		return func(name string) bool { return name == pattern }
	}
	return func(name string) bool { return matches(pattern, name) }
}

// Apply leaves out clusters, webhooks and what is about others. What is about the process
// as a whole stays.
func (f Filter) Apply(s *Status) {
	if f.IsEmpty() {
		return
	}
	cluster := narrowed(f.Cluster, func(name string) bool {
		return slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return c.Name == name })
	})
	webhook := narrowed(f.Webhook, func(name string) bool {
		return slices.ContainsFunc(s.Webhooks, func(w Webhook) bool { return w.Label() == name })
	})
	s.Clusters = kept(s.Clusters, func(c *Cluster) bool { return cluster(c.Name) })
	called := s.called()
	s.Webhooks = kept(s.Webhooks, func(w *Webhook) bool { return webhook(w.Label()) && (f.Cluster == "" || called[w.ID]) })
	serving := map[string]bool{}
	for i := range s.Webhooks {
		serving[s.Webhooks[i].Target] = true
	}
	s.Targets = kept(s.Targets, func(t *Target) bool { return serving[t.ID] })
	s.Pending = kept(s.Pending, func(p *Pending) bool { return webhook(p.Webhook) })
	about := func(d *Decision) bool {
		return cluster(d.Cluster) && (f.Webhook == "" || slices.ContainsFunc(slices.Concat(d.Webhooks, d.Unavailable), func(w Involved) bool { return webhook(w.String()) }))
	}
	s.Denials, s.FailOpens, s.Sheds = kept(s.Denials, about), kept(s.FailOpens, about), kept(s.Sheds, about)
	concerns := func(names []string, is func(string) bool) bool {
		return len(names) == 0 || slices.ContainsFunc(names, is)
	}
	s.Notices = kept(s.Notices, func(n *Notice) bool { return concerns(n.Clusters, cluster) && concerns(n.Webhooks, webhook) })
}

// called returns the webhooks that the clusters have, by ID.
func (s *Status) called() map[string]bool {
	ids := map[string]bool{}
	for i := range s.Clusters {
		chain := &s.Chains[s.Clusters[i].Chain]
		for _, id := range slices.Concat(chain.Mutating, chain.Validating) {
			ids[id] = true
		}
	}
	return ids
}

// kept returns those of list that are ok, never nil.
func kept[T any](list []T, ok func(*T) bool) []T {
	some := []T{}
	for i := range list {
		if ok(&list[i]) {
			some = append(some, list[i])
		}
	}
	return some
}
