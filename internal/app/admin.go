// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/admission-dispatcher/dispatcher/internal/config"
)

// adminListener is where probes and the status page are served.
type adminListener struct {
	net.Listener
	certificates []*certificates // one; none: plain HTTP
}

// listenAdmin reads the certificates, if there are any, and binds.
func listenAdmin(cfg config.Admin, log *slog.Logger) (*adminListener, error) {
	l := &adminListener{}
	if cfg.TLS.On() {
		c, err := newCertificates(listener{"admin", "admin.tls", "admin_"}, config.TLS{
			CertFile:     cfg.TLS.CertFile,
			KeyFile:      cfg.TLS.KeyFile,
			ClientCAFile: cfg.TLS.ClientCAFile,
			ClientAuth:   config.IfGiven, // probes present none; all else asks for one
		}, log)
		if err != nil {
			return nil, err
		}
		l.certificates = []*certificates{c}
	}
	var err error
	if l.Listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	return l, nil
}

// serve serves until the server is closed.
func (l *adminListener) serve(s *http.Server) {
	if len(l.certificates) == 0 {
		_ = s.Serve(l)
		return
	}
	s.TLSConfig = l.certificates[0].config()
	_ = s.ServeTLS(l, "", "")
}

func (l *adminListener) url() string {
	scheme := "http"
	if len(l.certificates) > 0 {
		scheme = "https"
	}
	return scheme + "://" + l.Addr().String() + "/"
}
