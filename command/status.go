// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// statusOptions are the flags of status.
type statusOptions struct {
	admin, config string
	ca, cert, key string
	only          status.Filter
	watch         bool
	format        *output
}

const (
	defaultAdmin   = "http://" + config.DefaultAdmin
	statusTimeout  = 5 * time.Second
	statusInterval = 2 * time.Second // between two looks of --watch
	maxStatus      = 256 << 20       // bytes: above what a thousand clusters take
)

// silentError says that there is nobody to ask.
type silentError struct{ err error }

func (e *silentError) Error() string { return e.err.Error() }

func (e *silentError) Unwrap() error { return e.err }

func newStatus() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [--admin URL | --config FILE]",
		Short: "Print how a running dispatcher is, from its admin listener",
		Long: `Print how a running dispatcher is: what needs attention, webhooks with their
endpoints and latencies, clusters, recent fail-opens and denials, and changes of
the configuration. It asks /api/v1/status of the admin listener, which has more
(-o json). --cluster and --webhook leave out what is about others: each is a name,
a part of one, or a glob.

The exit code is 0 if nothing is critical, 1 if something is: the dispatcher is not
ready, does not serve what its sources say, or a webhook cannot be called. It is 2
if the dispatcher cannot be reached.`,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.admin, "admin", defaultAdmin, "the admin listener, as host:port or URL")
	flags.StringVar(&o.config, "config", "", "the DispatcherConfiguration file that says where the admin listener is on this host")
	flags.StringVar(&o.only.Cluster, "cluster", "", "show what is about these clusters")
	flags.StringVar(&o.only.Webhook, "webhook", "", "show what is about these webhooks, of configuration/name")
	flags.StringVar(&o.ca, "ca", "", "file of the authorities of its certificate, in PEM; default: the system's")
	flags.StringVar(&o.cert, "cert", "", "file of a client certificate, in PEM")
	flags.StringVar(&o.key, "key", "", "file of its key, in PEM")
	flags.BoolVar(&o.watch, "watch", false, "look again every two seconds, until interrupted")
	cmd.MarkFlagsRequiredTogether("cert", "key")
	cmd.MarkFlagsMutuallyExclusive("admin", "config")
	o.format = outputFlag(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if _, err := o.listener(); err != nil {
			return err
		}
		return cobra.NoArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.config != "" {
			cfg, err := loadConfig(cmd.ErrOrStderr(), o.config)
			if err != nil {
				return err
			}
			o.admin = adminOf(cfg)
		}
		client, err := newStatusClient(&o)
		if err != nil {
			return err
		}
		defer client.http.CloseIdleConnections()
		if !o.watch {
			return client.show(cmd.Context(), cmd.OutOrStdout())
		}
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		return client.watch(ctx, cmd.OutOrStdout())
	}
	return cmd
}

// show asks once and prints the answer.
func (c *statusClient) show(ctx context.Context, w io.Writer) error {
	s, document, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if c.format == asJSON {
		err = printJSON(w, document)
	} else {
		err = printStatus(w, s)
	}
	if err == nil && (!s.Ready || len(s.Problems) > 0 || slices.ContainsFunc(s.Notices, func(n status.Notice) bool { return n.Critical() })) {
		err = errSaid
	}
	return err
}

// adminOf returns the URL of the admin listener of a configuration, for who is on its host.
func adminOf(cfg *config.Config) string {
	scheme := "http"
	if cfg.Admin.TLS.On() {
		scheme = "https"
	}
	host, port, _ := net.SplitHostPort(cfg.Admin.Listen) // it has been validated
	if at, err := netip.ParseAddr(host); host == "" || err == nil && at.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// listener returns the URL of the admin listener. host:port is one by itself.
func (o *statusOptions) listener() (*url.URL, error) {
	text := o.admin
	if !strings.Contains(text, "://") {
		scheme := "http://"
		if o.ca != "" || o.cert != "" {
			scheme = "https://"
		}
		text = scheme + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Port() == "" && text != o.admin || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--admin must be host:port or a URL such as %s, not %q", defaultAdmin, o.admin)
	}
	return u, nil
}

// clearScreen moves a terminal's cursor home and erases what is below.
const clearScreen = "\x1b[H\x1b[2J"

// watch shows until ctx is done, also while nobody answers.
func (c *statusClient) watch(ctx context.Context, w io.Writer) error {
	ticker := time.NewTicker(statusInterval)
	defer ticker.Stop()
	for {
		if isTerminal(w) {
			_, _ = io.WriteString(w, clearScreen)
		}
		err := c.show(ctx, w)
		if ctx.Err() != nil {
			return nil // it was interrupted, which is how it ends
		}
		if err != nil && !errors.Is(err, errSaid) {
			_, _ = fmt.Fprintf(w, "%s: %v\n", time.Now().Format(time.TimeOnly), err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// ask returns the Status, and the document as the dispatcher sent it.
func (c *statusClient) ask(ctx context.Context) (*status.Status, json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, &silentError{err}
	}
	defer resp.Body.Close()
	document, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	if err != nil {
		return nil, nil, &silentError{fmt.Errorf("%s: %w", c.url, err)}
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, &silentError{fmt.Errorf("%s: HTTP status %d: %.200q", c.url, resp.StatusCode, document)}
	}
	var s status.Status
	if err := json.Unmarshal(document, &s); err != nil {
		return nil, nil, &silentError{fmt.Errorf("%s is no status of a dispatcher: %w", c.url, err)}
	}
	return &s, document, nil
}

// statusClient asks one admin listener.
type statusClient struct {
	url    string // of the document
	format output
	http   *http.Client
}

func newStatusClient(o *statusOptions) (*statusClient, error) {
	u, err := o.listener()
	if err != nil {
		return nil, err
	}
	document := u.JoinPath("api/v1/status")
	if !o.only.IsEmpty() {
		document.RawQuery = url.Values{"cluster": {o.only.Cluster}, "webhook": {o.only.Webhook}}.Encode()
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		bundle, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("--ca: %s holds no PEM certificate", o.ca)
		}
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return &statusClient{
		url:    document.String(),
		format: *o.format,
		http:   &http.Client{Timeout: statusTimeout, Transport: &http.Transport{TLSClientConfig: settings, Proxy: nil}},
	}, nil
}
