// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/admin"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// newAdminCertificates returns nil where the admin listener speaks plain HTTP.
func newAdminCertificates(files config.AdminTLS, log *slog.Logger) (*certificates, error) {
	if !files.On() {
		return nil, nil
	}
	return newCertificates(listener{"admin", "admin.tls"}, config.TLS{
		CertFile:     files.CertFile,
		KeyFile:      files.KeyFile,
		ClientCAFile: files.ClientCAFile,
		ClientAuth:   config.IfGiven, // probes present none; all else asks for one
	}, log)
}

func (a *App) newStatus(version string) *status.Collector {
	return status.New(status.Config{
		Version:      version,
		Registry:     a.registry,
		Unready:      a.unready,
		Namespaces:   a.namespaces.Status,
		Certificates: a.certificateStatus,
	})
}

// newAdmin returns the admin server, which serveAdmin serves.
func (a *App) newAdmin() *http.Server {
	for _, w := range a.cfg.Warnings("") {
		a.log.Warn("configuration warning", "field", w.Field, "value", w.Value, "reason", w.Reason)
	}
	return admin.New(admin.Config{
		Unready:             a.unready,
		Notes:               a.notes,
		Metrics:             a.metrics.Handler(),
		Status:              admin.NewPages(a.status.Status, a.log),
		Profiling:           a.cfg.Admin.Profiling,
		CertificateRequired: a.cfg.Admin.TLS.ClientCAFile != "",
		Logger:              a.log,
	})
}

// serveAdmin serves until the server is closed.
func (a *App) serveAdmin(s *http.Server) {
	if a.adminCertificates == nil {
		_ = s.Serve(a.admin)
		return
	}
	s.TLSConfig = a.adminCertificates.config()
	_ = s.ServeTLS(a.admin, "", "")
}

// AdminURL returns where the status page is.
func (a *App) AdminURL() string {
	scheme := "http"
	if a.adminCertificates != nil {
		scheme = "https"
	}
	return scheme + "://" + a.admin.Addr().String() + "/"
}

// unready returns why the process should get no traffic.
func (a *App) unready() []string {
	address, stopping := a.state.now()
	switch {
	case stopping:
		return []string{"stopping"}
	case address != nil:
		return nil
	}
	why := []string{"no configuration has been loaded yet"}
	for _, p := range a.registry.Problems() {
		why = append(why, p.String())
	}
	return why
}

// notes returns what is wrong although the process can do its work. Anybody may read
// it, so it has no word of an API or a webhook: those could pass for ours.
func (a *App) notes() []string {
	var notes []string
	for _, s := range a.namespaces.Status() {
		if s.Stale || s.Credential != "" {
			notes = append(notes, s.String())
		}
	}
	if s := a.registry.Snapshot(); s != nil {
		for _, p := range s.Pending {
			notes = append(notes, fmt.Sprintf("webhook %s is pending: %s", p.Webhook, pendingCause(p.Err)))
		}
	}
	for _, t := range a.registry.Draining() {
		notes = append(notes, fmt.Sprintf("webhook target %s is draining: not yet safe to stop", t.URL()))
	}
	return notes
}

// pendingCause is the cause of a probe that failed; the status has the rest.
func pendingCause(err error) hook.Cause {
	if failed, ok := errors.AsType[*hook.CallError](err); ok {
		return failed.Cause
	}
	return hook.BadAnswer
}
