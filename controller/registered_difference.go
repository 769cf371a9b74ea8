// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// differences returns what the cluster has otherwise than would be printed for it, in
// words, and what an enforcer of its cloud has added, which is none. It shows neither
// URLs nor certificates nor expressions.
func differences(has, wants *configuration, ordered bool) (found, added []string) {
	had := byName(has)
	var names, hadNames []string
	for _, w := range wants.hooks {
		h := had[w.name]
		if h == nil {
			found = append(found, w.name+" is missing")
			continue
		}
		names = append(names, w.name)
		more, ignored := w.differences(h)
		for _, m := range more {
			found = append(found, w.name+": "+m)
		}
		added = append(added, ignored...)
	}
	wanted := byName(wants)
	for _, h := range has.hooks {
		if wanted[h.name] == nil {
			found = append(found, h.name+" is there, and nothing calls for it any more")
		} else {
			hadNames = append(hadNames, h.name)
		}
	}
	if ordered && !slices.Equal(names, hadNames) {
		found = append(found, "the webhooks are in another order")
	}
	slices.Sort(added)
	return found, slices.Compact(added)
}

func byName(c *configuration) map[string]*hook {
	all := make(map[string]*hook, len(c.hooks))
	for _, h := range c.hooks {
		all[h.name] = h
	}
	return all
}

// differences returns what h, which is registered, has otherwise than w.
func (w *hook) differences(h *hook) (found, added []string) {
	switch {
	case h.service && !strings.HasSuffix(w.url, "//"+hostOf(w.url)+h.url):
		found = append(found, "clientConfig.service.path is another one")
	case !h.service && h.url != w.url:
		found = append(found, "clientConfig.url is another one")
	case w.private && !h.private:
		found = append(found, "clientConfig.url has no path secret, and the Cluster is known by nothing else")
	}
	if !h.service && !bytes.Equal(h.authority, w.authority) {
		found = append(found, "clientConfig.caBundle is another one")
	}
	for i, name := range fieldNames {
		if h.fields[i] != w.fields[i] {
			found = append(found, fmt.Sprintf("%s is %q, not %q", name, h.fields[i], w.fields[i]))
		}
	}
	for _, r := range w.rules {
		if !slices.Contains(h.rules, r) {
			found = append(found, "rules lack "+r)
		}
	}
	for _, r := range h.rules {
		if !slices.Contains(w.rules, r) {
			found = append(found, "rules have "+r+", which nobody wants any more")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.conditions)) {
		switch expression, ok := h.conditions[name]; {
		case !ok:
			found = append(found, "matchConditions lack "+name)
		case strings.TrimSpace(expression) != strings.TrimSpace(w.conditions[name]):
			found = append(found, "the matchCondition "+name+" is another one")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.conditions)) {
		if _, ok := w.conditions[name]; !ok {
			found = append(found, "matchConditions have "+name+", which is not ours")
		}
	}
	for _, s := range []struct {
		name       string
		has, wants []requirement
		enforced   bool
	}{{"namespaceSelector", h.namespaces, w.namespaces, true}, {"objectSelector", h.objects, w.objects, false}} {
		for _, r := range beyond(s.wants, s.has) {
			found = append(found, fmt.Sprintf("%s lacks %s", s.name, r))
		}
		for _, r := range beyond(s.has, s.wants) {
			if s.enforced && isEnforced(r) {
				added = append(added, r.String())
				continue
			}
			found = append(found, fmt.Sprintf("%s has %s, which is not ours", s.name, r))
		}
	}
	return found, added
}

// hostOf returns host:port of a URL.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// isOurs reports whether a configuration has nothing but webhooks of the dispatcher.
func (c *configuration) isOurs() bool {
	return !slices.ContainsFunc(c.hooks, func(h *hook) bool { return !strings.HasSuffix(h.name, ownSuffix) })
}

// isPrivate reports whether it has a webhook of which the controller does not know where it
// is called.
func (c *configuration) isPrivate() bool {
	return slices.ContainsFunc(c.hooks, func(h *hook) bool { return h.private })
}

// ownSuffix ends the names of the webhooks that package registration makes.
const ownSuffix = ".admission-dispatcher.dispatcher.dev"
