// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/dashboards"
)

// panels are those that have shown nothing so far.
type panels struct {
	t    *testing.T
	from *prometheus
	dark []panel
}

// panel is a query of a panel.
type panel struct{ dashboard, title, expr string }

func newPanels(t *testing.T, from *prometheus) *panels {
	all := &panels{t: t, from: from}
	for _, d := range dashboards.All() {
		for _, p := range d.Panels {
			for _, q := range p.Queries {
				all.dark = append(all.dark, panel{d.UID, p.Title, q.Expr})
			}
		}
	}
	return all
}

// look asks what the panels that were dark show now, and returns the names of
// those that are still dark and not among except.
func (p *panels) look(except map[string]string) []string {
	p.t.Helper()
	chosen := map[string]*strings.Replacer{}
	for _, d := range dashboards.All() {
		chosen[d.UID] = p.choose(d.Vars)
	}
	p.dark = slices.DeleteFunc(p.dark, func(one panel) bool {
		return p.from.shows(chosen[one.dashboard].Replace(scaledRanges(p.t, one.expr)))
	})
	var names []string
	for _, one := range p.dark {
		if name := one.dashboard + ", " + one.title; except[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// unmet returns the expressions that have no value now.
func (p *panels) unmet(exprs ...string) []string {
	p.t.Helper()
	return slices.DeleteFunc(exprs, func(expr string) bool { return p.from.shows(scaledRanges(p.t, expr)) })
}

// choose replaces the variables as Grafana does when each of their values is
// chosen by hand.
func (p *panels) choose(variables []dashboards.Variable) *strings.Replacer {
	p.t.Helper()
	pairs := []string{"$__rate_interval", shortest.String()}
	for _, v := range variables {
		q := values.FindStringSubmatch(v.Query)
		list := p.from.labelValues(q[2], strings.NewReplacer(pairs...).Replace(q[1]))
		for i, value := range list {
			list[i] = strings.ReplaceAll(regexp.QuoteMeta(value), `\`, `\\`)
		}
		pairs = append(pairs, "$"+v.Name, "("+strings.Join(list, "|")+")")
	}
	return strings.NewReplacer(pairs...)
}
