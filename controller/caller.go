// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The bounds of what a cluster is asked.
const (
	dialTimeout = 3 * time.Second
	askTimeout  = 10 * time.Second // of all that one look at a cluster takes
	maxAnswer   = 8 << 20          // bytes
	maxWords    = 200              // of an answer that is shown
)

// fieldManager owns what the controller applies.
const fieldManager = "admission-dispatcher-controller"

const registrationVersion = "admissionregistration.k8s.io/v1"

// caller asks the API of one cluster for the objects by which it calls the dispatcher. It
// is used for one look, and has connections of its own: a credential that is renewed is
// used by the next look.
type caller struct {
	host   string
	token  string
	client *http.Client
}

// errKubeconfig is not more specific, because a parser's words may hold a token.
var errKubeconfig = errors.New("the kubeconfig cannot be used: it must have a server, its authorities and a certificate or a token")

// newCaller returns a caller. allowed judges each address that is dialled; nil: any.
func newCaller(kubeconfig []byte, allowed func(netip.AddrPort) error) (*caller, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil || cfg.Insecure || cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.BearerTokenFile != "" || cfg.CertFile != "" || cfg.KeyFile != "" || cfg.CAFile != "" {
		return nil, errKubeconfig
	}
	trust, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, errKubeconfig
	}
	dialer := &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || allowed == nil {
			return err
		}
		return allowed(at)
	}}
	return &caller{
		host: strings.TrimRight(cfg.Host, "/"), token: cfg.BearerToken,
		client: &http.Client{
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSClientConfig: trust, TLSHandshakeTimeout: dialTimeout,
				MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
			},
			// A redirect would take the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func (c *caller) close() { c.client.CloseIdleConnections() }

// refusal is an answer with another status than 200 or 201.
type refusal struct {
	code    int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("HTTP status %d: %s", r.code, r.message) }

// get returns a registration; nil: there is none.
func (c *caller) get(ctx context.Context, resource string) ([]byte, error) {
	document, err := c.send(ctx, http.MethodGet, resource, "", nil, nil)
	if r, ok := errors.AsType[*refusal](err); ok && r.code == http.StatusNotFound {
		return nil, nil
	}
	return document, err
}

// apply applies a registration by server-side apply, and returns it as it is then. Fields
// that others own are taken from them: the object is ours.
func (c *caller) apply(ctx context.Context, resource string, document []byte, dryRun bool) ([]byte, error) {
	query := url.Values{"fieldManager": {fieldManager}, "force": {"true"}}
	if dryRun {
		query.Set("dryRun", "All")
	}
	return c.send(ctx, http.MethodPatch, resource, "application/apply-patch+yaml", query, document)
}

// patch changes a registration by a JSON patch.
func (c *caller) patch(ctx context.Context, resource string, document []byte) ([]byte, error) {
	return c.send(ctx, http.MethodPatch, resource, "application/json-patch+json", url.Values{"fieldManager": {fieldManager}}, document)
}

func (c *caller) send(ctx context.Context, method, resource, contentType string, query url.Values, body []byte) ([]byte, error) {
	at := fmt.Sprintf("%s/apis/%s/%s/%s?%s", c.host, registrationVersion, resource, registrationName, query.Encode())
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, errKubeconfig
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", fieldManager)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, unreachable(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, unreachable(err)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the API sends more than %d bytes", maxAnswer)
	case answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated:
		var status struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(text, &status) // as much as it says
		return nil, &refusal{answer.StatusCode, oneLine(status.Message, maxWords)}
	}
	return text, nil
}

// unreachable says why a cluster did not answer, in words that do not change from one
// time to the next: a condition is written when they do.
func unreachable(err error) error {
	timeout, timed := errors.AsType[net.Error](err)
	dns, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), timed && timeout.Timeout():
		return errors.New("the API does not answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the API refuses the connection")
	case unresolved && dns.IsNotFound:
		return errors.New("the host of the API is not found")
	}
	if isTLS(err) {
		return errors.New("the API and the controller do not trust each other: see the certificates of the kubeconfig")
	}
	return errors.New("the API cannot be reached")
}

// isTLS reports whether a certificate was not taken, by either side.
func isTLS(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return verification || alert
}
