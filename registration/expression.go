// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/exempt"
)

// The expressions here are CEL for the API server, which errs on the side of 403
// where one fails: every optional field is asked for with has() first. The
// API server's request.resource is the resource as the user sent it.
const (
	always = "true"
	never  = "false"

	inNamespace   = `has(request.namespace) && request.namespace != ""`
	ofNamespaces  = `request.resource.resource == "namespaces"`
	noSubresource = `(!has(request.subResource) || request.subResource == "")`
)

// allOf joins what must hold together.
func allOf(terms ...string) string {
	terms = slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return t == always })
	switch {
	case slices.Contains(terms, never):
		return never
	case len(terms) == 0:
		return always
	case len(terms) == 1:
		return terms[0]
	}
	return "(" + strings.Join(terms, ") && (") + ")"
}

// anyOf joins alternatives.
func anyOf(terms ...string) string {
	terms = slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return t == never })
	switch {
	case slices.Contains(terms, always):
		return always
	case len(terms) == 0:
		return never
	case len(terms) == 1:
		return terms[0]
	}
	return "(" + strings.Join(terms, ") || (") + ")"
}

func negation(term string) string {
	switch term {
	case always:
		return never
	case never:
		return always
	}
	return "!(" + term + ")"
}

// requestRule is the CEL text of a bypass or failOpen rule: all fields that are set
// must fit.
func requestRule(r *exempt.Rule) string {
	var all []string
	if len(r.Namespaces) > 0 {
		all = append(all, "has(request.namespace) && request.namespace in "+list(r.Namespaces))
	}
	if len(r.Users) > 0 {
		all = append(all, "has(request.userInfo.username) && request.userInfo.username in "+list(r.Users))
	}
	if len(r.Groups) > 0 {
		all = append(all, "has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in "+list(r.Groups)+")")
	}
	if len(r.ServiceAccounts) > 0 {
		all = append(all, serviceAccounts(r.ServiceAccounts))
	}
	if len(r.Resources) > 0 {
		all = append(all, resources(r.Resources))
	}
	if len(r.Operations) > 0 {
		all = append(all, "request.operation in "+list(r.Operations))
	}
	if len(r.ExtraKeys) > 0 {
		all = append(all, "has(request.userInfo.extra) && "+list(r.ExtraKeys)+".exists(k, k in request.userInfo.extra)")
	}
	return allOf(all...)
}

func serviceAccounts(names []string) string {
	var some []string
	for _, s := range names {
		namespace, name, _ := strings.Cut(s, "/")
		prefix := "system:serviceaccount:" + namespace + ":"
		if name == "*" {
			pattern := "^" + regexp.QuoteMeta(prefix) + "[^:]+$"
			some = append(some, fmt.Sprintf("request.userInfo.username.matches(%s)", quote(pattern)))
			continue
		}
		some = append(some, fmt.Sprintf("request.userInfo.username == %s", quote(prefix+name)))
	}
	return allOf("has(request.userInfo.username)", anyOf(some...))
}

func resources(patterns []string) string {
	var some []string
	for _, s := range patterns {
		group, pattern, _ := strings.Cut(s, "/")
		some = append(some, allOf(equals("request.resource.group", group), resource(pattern)))
	}
	return anyOf(some...)
}

// resource is the text of an entry of rules.resources, in any group.
func resource(pattern string) string {
	name, sub, _ := strings.Cut(pattern, "/")
	named := equals("request.resource.resource", name)
	switch sub {
	case "*":
		return named
	case "":
		return allOf(named, noSubresource)
	}
	return allOf(named, "has(request.subResource)", equals("request.subResource", sub))
}

// equals compares a field with a value that may be "*".
func equals(field, value string) string {
	if value == "*" {
		return always
	}
	return field + " == " + quote(value)
}

// oneOf compares a field with values of which one may be "*".
func oneOf(field string, values []string) string {
	switch {
	case slices.Contains(values, "*"):
		return always
	case len(values) == 1:
		return equals(field, values[0])
	}
	return field + " in " + list(values)
}

func list(values []string) string {
	values = slices.Clone(values)
	slices.Sort(values)
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes a CEL string literal. What is not printable ASCII is escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= 0x20 && r < 0x7f:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
