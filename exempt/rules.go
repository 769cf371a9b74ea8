// SPDX-License-Identifier: Apache-2.0

package exempt

import (
	"bytes"
	"strings"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

// Rules are compiled rules, read-only and safe for concurrent use.
// The zero value selects nothing.
type Rules struct{ rules []compiled }

type compiled struct {
	source          Rule
	namespaces      map[string]bool // nil: any
	users           map[string]bool
	groups          map[string]bool
	serviceAccounts []serviceAccount
	resources       []requestResource
	operations      [codec.Connect + 1]bool
	extraKeys       map[string]bool
}

type serviceAccount struct{ namespace, name string }

type requestResource struct {
	group   string
	pattern match.ResourcePattern
}

// Compile compiles rules that Validate found good.
func Compile(rules []Rule) Rules {
	compiled := Rules{rules: make([]compiled, len(rules))}
	for i := range rules {
		compiled.rules[i] = compileRule(&rules[i])
	}
	return compiled
}

func compileRule(r *Rule) compiled {
	c := compiled{
		source:     *r,
		namespaces: setOf(r.Namespaces),
		users:      setOf(r.Users),
		groups:     setOf(r.Groups),
		extraKeys:  setOf(r.ExtraKeys),
	}
	for _, s := range r.ServiceAccounts {
		namespace, name, _ := strings.Cut(s, "/")
		c.serviceAccounts = append(c.serviceAccounts, serviceAccount{namespace, name})
	}
	for _, s := range r.Resources {
		group, rest, _ := strings.Cut(s, "/")
		c.resources = append(c.resources, requestResource{group, match.ParseResource(rest)})
	}
	for o := codec.Create; o <= codec.Connect; o++ {
		c.operations[o] = len(r.Operations) == 0
	}
	for _, s := range r.Operations {
		c.operations[parseOperation(s)] = true
	}
	return c
}

func setOf(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	s := make(map[string]bool, len(names))
	for _, name := range names {
		s[name] = true
	}
	return s
}

// Sources returns the rules as they were written, in order.
func (rs *Rules) Sources() []Rule {
	sources := make([]Rule, len(rs.rules))
	for i := range rs.rules {
		sources[i] = rs.rules[i].source
	}
	return sources
}

// Match returns the name of the first rule that selects r.
func (rs *Rules) Match(r *codec.Review) (name string, ok bool) {
	for i := range rs.rules {
		if rs.rules[i].selects(r) {
			return rs.rules[i].source.Name, true
		}
	}
	return "", false
}

// selects reports whether every field that is set fits.
func (c *compiled) selects(r *codec.Review) bool {
	return c.operations[r.Operation] &&
		(c.namespaces == nil || c.namespaces[string(r.Namespace)]) &&
		(c.users == nil || c.users[string(r.User.Username)]) &&
		(c.groups == nil || c.fitsGroup(r)) &&
		(c.serviceAccounts == nil || c.fitsServiceAccount(r)) &&
		(c.resources == nil || c.fitsResource(r)) &&
		(c.extraKeys == nil || c.fitsExtra(r))
}

func (c *compiled) fitsGroup(r *codec.Review) bool {
	for _, g := range r.User.Groups {
		if c.groups[string(g)] {
			return true
		}
	}
	return false
}

var serviceAccountPrefix = []byte("system:serviceaccount:")

func (c *compiled) fitsServiceAccount(r *codec.Review) bool {
	rest, ok := bytes.CutPrefix(r.User.Username, serviceAccountPrefix)
	if !ok {
		return false
	}
	namespace, name, ok := bytes.Cut(rest, []byte(":"))
	if !ok || len(name) == 0 || bytes.IndexByte(name, ':') >= 0 {
		return false // no service account has such a user name
	}
	for i := range c.serviceAccounts {
		a := &c.serviceAccounts[i]
		if a.namespace == string(namespace) && (a.name == "*" || a.name == string(name)) {
			return true
		}
	}
	return false
}

// fitsResource goes by what the user sent: the cluster's registration, which holds
// the same rules, knows nothing else.
func (c *compiled) fitsResource(r *codec.Review) bool {
	for i := range c.resources {
		p := &c.resources[i]
		if (p.group == "*" || p.group == string(r.RequestResource.Group)) && p.pattern.Fits(r.RequestResource.Resource, r.RequestSubResource) {
			return true
		}
	}
	return false
}

func (c *compiled) fitsExtra(r *codec.Review) bool {
	for i := range r.User.Extra {
		if c.extraKeys[string(r.User.Extra[i].Key)] {
			return true
		}
	}
	return false
}
