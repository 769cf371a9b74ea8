// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// templates are the pages by name; read-only.
var templates = parseTemplates("overview", "cluster", "webhook", "absent")

func parseTemplates(names ...string) map[string]*template.Template {
	parsed := map[string]*template.Template{}
	for _, name := range names {
		parsed[name] = template.Must(template.New(name).Funcs(functions).
			ParseFS(assets, "assets/layout.html", "assets/tables.html", "assets/"+name+".html"))
	}
	return parsed
}

var functions = template.FuncMap{
	"badge":       func(class, text string) badge { return badge{class, text} },
	"stamp":       func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
	"ago":         ago,
	"since":       func(now, then time.Time) string { return span(now.Sub(then)) },
	"seconds":     seconds,
	"latency":     latency,
	"count":       status.Count,
	"number":      number,
	"clusterLink": func(name string) string { return "/clusters/" + url.PathEscape(name) },
	"webhookLink": webhookLink,
	"request":     request,
	"why":         why,
	"labels":      labels,
	"first":       first,
	"more":        more,
	"diff":        func(what string, names []string) difference { return difference{what, names} },
}

// badge is a state in words, with the class that gives it its shape and colour.
type badge struct{ Class, Text string }

type difference struct {
	What  string
	Names []string
}

func webhookLink(configuration, name string) string {
	return "/webhooks/" + url.PathEscape(configuration) + "/" + url.PathEscape(name)
}

// request says what was asked for, as kubectl would.
func request(d status.Decision) string {
	resource := d.Resource
	if d.Group != "" {
		resource += "." + d.Group
	}
	if d.Subresource != "" {
		resource += "/" + d.Subresource
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s", d.Operation, resource, strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")), " ")
}

// why says what a webhook's part came to, beyond what the list is about.
func why(w status.Involved) string {
	text := w.Cause
	if w.Result == "skipped" {
		text = strings.TrimSpace("skipped " + text)
	}
	if w.FailOpenRule != "" {
		text += ", rule " + w.FailOpenRule
	}
	return text
}

func labels(m map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, key+"="+m[key])
	}
	return strings.Join(pairs, ", ")
}

// first returns at most n of a list of names or problems.
func first(n int, list any) any {
	switch l := list.(type) {
	case []string:
		return l[:min(n, len(l))]
	case []manifest.Problem:
		return l[:min(n, len(l))]
	}
	return list
}

// more says how many first left out.
func more(n, of int) string {
	if of <= n {
		return ""
	}
	return fmt.Sprintf(" and %d more", of-n)
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
