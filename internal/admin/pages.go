// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

//go:embed assets
var assets embed.FS

// contentPolicy lets a page load what this listener serves and nothing else: a
// name that got past all escaping could still not run anything.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// pages serves the status page, by hand from one Status each.
type pages struct {
	status func() status.Status
	log    *slog.Logger
}

// NewPages returns the status page and /api/v1/status, for GET only. status is
// called for every request, by several goroutines.
func NewPages(status func() status.Status, log *slog.Logger) http.Handler {
	p := &pages{status: status, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.overview)
	mux.HandleFunc("GET /clusters/{name}", p.cluster)
	mux.HandleFunc("GET /webhooks/{configuration}/{name}", p.webhook)
	mux.HandleFunc("GET /api/v1/status", p.document)
	for _, name := range []string{"style.css", "script.js", "icon.svg"} {
		mux.HandleFunc("GET /assets/"+name, p.asset(name))
	}
	return guarded(unrebound(mux))
}

// guarded sets the headers that every answer has.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// filtered returns the status, as far as the query wants it.
func (p *pages) filtered(r *http.Request) (status.Status, status.Filter) {
	s, query := p.status(), r.URL.Query()
	f := status.Filter{Cluster: query.Get("cluster"), Webhook: query.Get("webhook")}
	f.Apply(&s)
	return s, f
}

func (p *pages) overview(w http.ResponseWriter, r *http.Request) {
	s, f := p.filtered(r)
	p.render(w, r, http.StatusOK, overviewPage(newOverview(&s, f)))
}

func (p *pages) cluster(w http.ResponseWriter, r *http.Request) {
	s := p.status()
	name := r.PathValue("name")
	if view := newClusterView(&s, name); view != nil {
		p.render(w, r, http.StatusOK, clusterPage(view))
		return
	}
	p.render(w, r, http.StatusNotFound, absentPage(newAbsent(&s, "Cluster "+name)))
}

func (p *pages) webhook(w http.ResponseWriter, r *http.Request) {
	s := p.status()
	configuration, name := r.PathValue("configuration"), r.PathValue("name")
	if view := newWebhookView(&s, configuration, name); view != nil {
		p.render(w, r, http.StatusOK, webhookPage(view))
		return
	}
	p.render(w, r, http.StatusNotFound, absentPage(newAbsent(&s, "Webhook "+configuration+"/"+name)))
}

func (p *pages) document(w http.ResponseWriter, r *http.Request) {
	s, _ := p.filtered(r)
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s); err != nil {
		p.log.Debug("the status could not be written", "error", err)
	}
}

// render writes a page as a whole or not at all. A caller that has gone is not an
// error of the page.
func (p *pages) render(w http.ResponseWriter, r *http.Request, code int, page templ.Component) {
	var body bytes.Buffer
	if err := page.Render(context.WithoutCancel(r.Context()), &body); err != nil {
		p.log.Error("the status page could not be rendered", "error", err) // it names the template and the line
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes())
}

func (p *pages) asset(name string) http.HandlerFunc {
	data, err := fs.ReadFile(assets, "assets/"+name)
	if err != nil {
		panic(err) // it is embedded
	}
	kind := map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind[name[strings.LastIndexByte(name, '.')+1:]])
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(data)
	}
}

// page is what every page has.
type page struct {
	Title    string
	Status   *status.Status
	Sections []section
}

type section struct{ Anchor, Name string }

func newPage(s *status.Status, title string) page {
	return page{Title: title, Status: s, Sections: []section{
		{"webhooks", "Webhooks"}, {"endpoints", "Endpoints"}, {"failopens", "Fail-opens"}, {"denials", "Denials"},
		{"clusters", "Clusters"}, {"history", "History"}, {"certificates", "Certificates"},
	}}
}

// tile is one number in large type.
type tile struct{ Name, Value, More, Class string }

// decisions is a list of them with what it says when it is empty.
type decisions struct {
	Caption, Empty string
	Now            time.Time
	Rows           []status.Decision
}

func newDecisions(s *status.Status, caption, empty string, rows []status.Decision) decisions {
	return decisions{Caption: caption, Empty: empty, Now: s.Now, Rows: rows}
}

// absent is the page of what is not there.
type absent struct {
	page
	What string
}

func newAbsent(s *status.Status, what string) absent { return absent{newPage(s, "not here"), what} }
