// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// maxStatus bounds what is read of an answer that is an error, in bytes.
const maxStatus = 64 << 10

// client asks the API of one cluster, for all who have the same access to it. Each has
// connections of its own: those of client-go would come from a cache that never forgets.
type client struct {
	server      *url.URL
	http        *http.Client
	credentials *manifest.Credentials
	transports  transports
	lists       chan struct{} // a place for a list under way
}

func newClient(a manifest.KubeAccess, allowed func(netip.AddrPort) error) (*client, error) {
	server, err := url.Parse(a.Server)
	if err != nil {
		return nil, err
	}
	trust, err := trustOf(a)
	if err != nil {
		return nil, err
	}
	c := &client{server: server, credentials: manifest.NewCredentials(a), transports: transports{trust: trust, allowed: allowed}, lists: make(chan struct{}, 1)}
	c.http = &http.Client{
		Transport: c,
		// A redirect would take the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func trustOf(a manifest.KubeAccess) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.ServerName}
	if a.CA != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(a.CA)) {
			return nil, errors.New("certificate-authority holds no PEM certificate")
		}
	}
	return cfg, nil
}

// RoundTrip implements http.RoundTripper: with the credential as its files have it
// now, or, while they are broken, as they last had it.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	credential, err := c.credentials.Current()
	if credential == (manifest.Credential{}) {
		return nil, failure{cause: CauseCredential, err: err}
	}
	if credential.Token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+credential.Token)
	}
	return c.transports.of(credential.Certificate).RoundTrip(r)
}

// close closes the connections that nobody uses.
func (c *client) close() { c.transports.close() }

// get asks for a path of the API. The caller closes the body of the answer, which
// is 200; the error is a failure.
func (c *client) get(ctx context.Context, accept string, query url.Values, path ...string) (io.ReadCloser, error) {
	at := c.server.JoinPath(path...)
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, failureOf(err)
	}
	r.Header.Set("Accept", accept)
	return c.send(r, http.StatusOK)
}

// post sends a document in JSON to a path of the API. The caller closes the body of the
// answer, which is 201; the error is a failure.
func (c *client) post(ctx context.Context, document io.Reader, path ...string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.JoinPath(path...).String(), document)
	if err != nil {
		return nil, failureOf(err)
	}
	r.Header.Set("Accept", acceptAny)
	r.Header.Set("Content-Type", acceptAny)
	return c.send(r, http.StatusCreated)
}

// send returns the body of an answer with the status that is expected.
func (c *client) send(r *http.Request, expected int) (io.ReadCloser, error) {
	r.Header.Set("User-Agent", "admission-dispatcher")
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, failureOf(err)
	}
	if answer.StatusCode == expected {
		return answer.Body, nil
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, refusal(answer)
}

// refusal reads an answer with another status.
func refusal(answer *http.Response) error {
	var o object
	r := namespaceReader{document: newDocument(&budget{answer.Body, maxStatus, maxStatus})}
	_ = r.object(func(key string) error { return r.member(&o, key) }) // as much as can be read
	return refused(answer.StatusCode, o.status)
}

// version reads the version of the API server that answers.
func (c *client) version(ctx context.Context) (chain.KubernetesVersion, error) {
	body, err := c.get(ctx, acceptAny, nil, "version")
	if err != nil {
		return chain.KubernetesVersion{}, err
	}
	defer func() { _ = body.Close() }()
	var text string
	d := newDocument(&budget{body, maxStatus, maxStatus})
	err = d.object(func(key string) (err error) {
		if key == "gitVersion" {
			text, _, err = d.text(maxValue)
			return err
		}
		return d.skip()
	})
	if err != nil {
		return chain.KubernetesVersion{}, failureOf(err)
	}
	v, err := chain.ParseKubernetesVersion(text)
	if err != nil {
		return chain.KubernetesVersion{}, failure{cause: CauseAnswer, err: errors.New("/version says none")}
	}
	return v, nil
}

func queryOf(o *metav1.ListOptions) url.Values {
	query := url.Values{}
	set := func(key, value string) {
		if value != "" {
			query.Set(key, value)
		}
	}
	set("resourceVersion", o.ResourceVersion)
	set("resourceVersionMatch", string(o.ResourceVersionMatch))
	set("continue", o.Continue)
	if o.Limit > 0 {
		set("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.TimeoutSeconds != nil {
		set("timeoutSeconds", fmt.Sprint(*o.TimeoutSeconds))
	}
	if o.AllowWatchBookmarks {
		set("allowWatchBookmarks", "true")
	}
	return query
}
