// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// hostile leaves text, attributes in any quotes, comments and scripts.
const hostile = "'`\"--></script><script>alert(1)</script><img src=x onerror=y>/../%2e&quot;"

// attacked is an outage in which every text is hostile: of every field of every struct,
// so that one which is added is covered, too. Only what the pages choose by keeps its value.
func attacked() status.Status {
	s := outage()
	s.Warnings = s.Problems
	s.Mirror = mirrored().Mirror
	s.Mirror.Next.Quarantined = false
	s.Clusters[0].Namespaces = &status.Namespaces{}
	s.Clusters[0].Authorizer = &status.Authorizer{}
	s.Clusters[0].Objects = []status.Objects{{Cached: 1, Unkept: 2, Partial: true}}
	s.Clusters[0].Labels = map[string]string{"a": "b"}
	s.Webhooks[1].Policy = &status.Policy{Validations: []string{""}, Mutations: []string{""}, Actions: []string{""}}
	s.Webhooks[1].Retry, s.Webhooks[1].Reinvocation = true, true
	s.Denials[0].DryRun = true
	s.Unready = []string{""}
	poison(reflect.ValueOf(&s).Elem(), "")
	for i := range s.Pending {
		s.Pending[i].Webhook = hostile + "/" + hostile
	}
	for i := range s.Notices {
		s.Notices[i].Webhooks = []string{hostile + "/" + hostile}
		s.Notices[i].Runbook = "javascript:alert('" + hostile
	}
	return s
}

// poison sets every text below v, but for the IDs that join Webhooks, Targets and Chains.
func poison(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.String:
		if field != "ID" && field != "Target" && field != "Validating" && field != "Mutating" {
			v.SetString(hostile)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem(), field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), field)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]string]() && v.Len() > 0 {
			v.Set(reflect.ValueOf(map[string]string{hostile: hostile}))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			poison(v.Field(i), v.Type().Field(i).Name)
		}
	}
}

// Names are text on every page, wherever they come from, and stay in one piece in links.
func TestHostileNames(t *testing.T) {
	pages := pagesOf(attacked)
	name := url.PathEscape(hostile)
	for _, c := range []struct {
		path  string
		code  int
		least int // texts that the page has
	}{
		{"/?cluster=" + url.QueryEscape(hostile), http.StatusOK, 20},
		{"/", http.StatusOK, 200},
		{"/clusters/" + name, http.StatusOK, 80},
		{"/webhooks/" + name + "/" + name, http.StatusOK, 150},
		{"/clusters/" + name + "x", http.StatusNotFound, 1},
		{"/webhooks/" + name + "/x", http.StatusNotFound, 1},
	} {
		got := fetch(pages, http.MethodGet, c.path)
		page := got.Body.String()
		if got.Code != c.code {
			t.Errorf("%s: HTTP status %d, want %d", c.path, got.Code, c.code)
		}
		if n := strings.Count(html.UnescapeString(page), hostile); n < c.least {
			t.Errorf("%s shows %d names, want %d", c.path, n, c.least)
		}
		checkMarkup(t, c.path, page)
		for _, link := range links(page) {
			if code := fetch(pages, http.MethodGet, link).Code; code != http.StatusOK {
				t.Errorf("%s: %s: HTTP status %d", c.path, link, code)
			}
		}
	}
	if len(links(fetch(pages, http.MethodGet, "/").Body.String())) == 0 {
		t.Error("there are no links")
	}
}

// links are those to clusters and webhooks.
func links(page string) (paths []string) {
	for _, found := range regexp.MustCompile(`href="(/(?:clusters|webhooks)/[^"]*)"`).FindAllStringSubmatch(page, -1) {
		paths = append(paths, html.UnescapeString(found[1]))
	}
	return paths
}

// checkMarkup looks at each tag of a page: none of its parts comes from a name.
func checkMarkup(t *testing.T, path, page string) {
	t.Helper()
	tag := regexp.MustCompile(`^<(?:!doctype html|/?[a-z][a-z0-9]*(?: [a-zA-Z-]+(?:="[^"<>]*")?)*/?)>`)
	address := regexp.MustCompile(`^(?:/[^/]|/$|#content$|about:invalid|https://github\.com/)`)
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%s has %d scripts", path, n)
	}
	for rest := page; ; {
		at := strings.IndexByte(rest, '<')
		if at < 0 {
			return
		}
		rest = rest[at:]
		one := tag.FindString(rest)
		if one == "" || strings.HasPrefix(one, "<img") || strings.Contains(one, " on") && !strings.Contains(one, `"`) {
			t.Fatalf("%s is not escaped: %.80s", path, rest)
		}
		for _, found := range regexp.MustCompile(` (?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(one, -1) {
			if !address.MatchString(html.UnescapeString(found[1])) {
				t.Errorf("%s leads to %s", path, found[1])
			}
		}
		rest = rest[len(one):]
	}
}

// Templates have no way around the escaping: nothing of templ that takes text as it is,
// and no script or style with a value in it. Go beside them knows what a page is, and
// nothing more of templ.
func TestTemplatesEscape(t *testing.T) {
	unsafe := regexp.MustCompile(`templ\.|(?i)<style|\son[a-z]+=|\sstyle=|<script[^>]*>[^<]|<script[^>]*\{`)
	for file, source := range sources(t, "*.templ") {
		if found := unsafe.FindString(source); found != "" {
			t.Errorf("%s has %q, which templ does not escape", file, found)
		}
	}
	for file, source := range sources(t, "*.go") {
		if found := regexp.MustCompile(`\btempl\.\w+`).FindAllString(source, -1); slices.ContainsFunc(found, func(s string) bool { return s != "templ.Component" }) {
			t.Errorf("%s has %q, which may not be escaped", file, found)
		}
	}
}

// sources are files of the package by name, without tests and what is generated.
func sources(t *testing.T, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_templ.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	return texts
}
