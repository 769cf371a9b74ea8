// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Files name what the forwarder shows, and what it trusts, all in PEM.
type Files struct {
	ServingCert, ServingKey string // of the Service: NAME.NAMESPACE.svc
	ClientCert, ClientKey   string // the cluster's identity
	CA                      string // of the dispatcher; empty: the trust roots of the system
}

// generation is what the files held at one time. Its transport goes with it: a connection
// that was opened under an older certificate is not used any more.
type generation struct {
	serving, client tls.Certificate
	transport       *http.Transport
}

// watched are files that are read again when they change. While they do not fit together,
// the last good ones stay.
type watched struct {
	files    Files
	log      *slog.Logger
	current  atomic.Pointer[generation]
	failures atomic.Int64

	seen [][]byte // what current is made of; of the goroutine of run alone
	last string   // why the files are refused
}

func watch(files Files, log *slog.Logger) (*watched, error) {
	w := &watched{files: files, log: log}
	contents, err := files.read()
	if err != nil {
		return nil, err
	}
	g, err := files.compile(contents)
	if err != nil {
		return nil, err
	}
	w.seen = contents
	w.current.Store(g)
	return w, nil
}

// run looks at the files until ctx is done.
func (w *watched) run(ctx context.Context) {
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.refresh()
		}
	}
}

// refresh takes over what has changed.
func (w *watched) refresh() {
	contents, err := w.files.read()
	if err == nil && slices.EqualFunc(contents, w.seen, bytes.Equal) {
		w.last = ""
		return
	}
	var g *generation
	if err == nil {
		g, err = w.files.compile(contents)
	}
	if err != nil {
		w.failures.Add(1)
		if err.Error() != w.last {
			w.log.Warn("certificates refused, the last good ones stay", "error", err.Error())
		}
		w.last = err.Error()
		return
	}
	w.seen, w.last = contents, ""
	w.current.Swap(g).transport.CloseIdleConnections() // those in use are closed when they are idle
	w.log.Info("certificates replaced", "client", g.client.Leaf.Subject.String(), "clientExpires", g.client.Leaf.NotAfter, "servingExpires", g.serving.Leaf.NotAfter)
}

// close closes what is idle.
func (w *watched) close() { w.current.Load().transport.CloseIdleConnections() }

// read returns the contents in the order of the fields.
func (f Files) read() ([][]byte, error) {
	var contents [][]byte
	for _, path := range []string{f.ServingCert, f.ServingKey, f.ClientCert, f.ClientKey, f.CA} {
		var data []byte
		if path != "" {
			var err error
			if data, err = os.ReadFile(path); err != nil {
				if failed, ok := errors.AsType[*fs.PathError](err); ok {
					err = failed.Err
				}
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		contents = append(contents, data)
	}
	return contents, nil
}

func (f Files) compile(contents [][]byte) (*generation, error) {
	g := &generation{}
	var err error
	if g.serving, err = tls.X509KeyPair(contents[0], contents[1]); err != nil {
		return nil, fmt.Errorf("%s with %s: %s", f.ServingCert, f.ServingKey, strings.TrimPrefix(err.Error(), "tls: "))
	}
	if g.client, err = tls.X509KeyPair(contents[2], contents[3]); err != nil {
		return nil, fmt.Errorf("%s with %s: %s", f.ClientCert, f.ClientKey, strings.TrimPrefix(err.Error(), "tls: "))
	}
	var roots *x509.CertPool
	if f.CA != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(contents[4]) {
			return nil, fmt.Errorf("%s: holds no PEM certificate", f.CA)
		}
	}
	g.transport = &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots,
			// Whatever authorities the dispatcher names: it has them from many clusters.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &g.client, nil },
		},
		TLSHandshakeTimeout: dialTimeout,
		DisableCompression:  true, // bodies pass as they are
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     idleUpstream,

		MaxResponseHeaderBytes: headerBytes,
	}
	return g, nil
}

// To the dispatcher.
const (
	dialTimeout     = 5 * time.Second
	idleConnections = 64
	// idleUpstream is shorter than the dispatcher's lameDuck by default (10 s): when it
	// ends, no connection of ours is idle, to be closed just as a call begins.
	idleUpstream = 5 * time.Second
)
