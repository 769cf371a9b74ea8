// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/controller"
	"github.com/admission-dispatcher/dispatcher/registration"
)

// adminFlags say how the replicas are asked.
type adminFlags struct {
	replicas      addresses
	service       string
	port          int
	ca, cert, key string
	serverName    string
	plain         bool
}

// addresses is a flag that may be given more than once.
type addresses []string

// String implements flag.Value.
func (a *addresses) String() string { return strings.Join(*a, ",") }

// Set implements flag.Value.
func (a *addresses) Set(value string) error {
	if _, _, err := net.SplitHostPort(value); err != nil {
		return fmt.Errorf("%q is not host:port", value)
	}
	*a = append(*a, value)
	return nil
}

// runController writes conditions until ctx is done.
func runController(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("dispatcher-kube controller", flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := controller.Settings{Logger: slog.New(slog.NewJSONHandler(stderr, nil))}
	s.Mirror.Logger = s.Logger
	var admin adminFlags
	path := flags.String("config", "", "the dispatcher's `FILE`, a DispatcherConfiguration: objects are judged as the dispatcher will")
	flags.StringVar(&s.Mirror.Directory, "directory", "", "`DIRECTORY` for files of its own, in memory: secrets are among them")
	flags.StringVar(&s.Mirror.Namespace, "namespace", "", "`NAMESPACE` of the Secrets and ConfigMaps that objects name")
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig `FILE` of the API. Default: that of the cluster that this runs in")
	flags.BoolVar(&s.DryRun, "dry-run", true, "log what would be applied to clusters whose registration.policy is Apply, and apply nothing; =false applies it")
	flags.DurationVar(&s.Poll, "poll", controller.DefaultPoll, "how often the replicas are asked")
	flags.DurationVar(&s.Interval, "interval", controller.DefaultInterval, "how often the registration of a cluster is looked at")
	writes := flags.Float64("writes-per-second", float64(time.Second/controller.DefaultEvery), "how many objects' conditions are written in a second at most")
	flags.StringVar(&admin.service, "service", "", "`NAMESPACE/NAME` of the dispatcher's Service, whose ready endpoints are asked")
	flags.IntVar(&admin.port, "admin-port", 8081, "`PORT` of the admin listeners of --service")
	flags.Var(&admin.replicas, "replica", "`HOST:PORT` of a replica's admin listener, besides those of --service; may be given more than once")
	flags.StringVar(&admin.ca, "admin-ca", "", "`FILE` with the authorities of the admin listeners' certificates. Default: the system's")
	flags.StringVar(&admin.cert, "admin-cert", "", "`FILE` with the certificate that admin listeners are shown")
	flags.StringVar(&admin.key, "admin-key", "", "`FILE` with its key")
	flags.StringVar(&admin.serverName, "admin-server-name", "", "`NAME` that the admin listeners' certificates have. Default: their address")
	flags.BoolVar(&admin.plain, "admin-http", false, "ask without TLS, where admin.tls is not set")
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	if name := missing(map[string]string{"config": *path, "directory": s.Mirror.Directory, "namespace": s.Mirror.Namespace}); name != "" {
		_, _ = fmt.Fprintf(stderr, "error: --%s is required\n", name)
		return errUsage
	}
	if *writes <= 0 || *writes > 1000 {
		_, _ = fmt.Fprintln(stderr, "error: --writes-per-second must be above 0 and at most 1000")
		return errUsage
	}
	s.Every = time.Duration(float64(time.Second) / *writes)
	var err error
	if s.Replicas, err = admin.settings(); err != nil {
		return err
	}
	cfg, api, err := follow(&s.Mirror, *path, *kubeconfig)
	if err != nil {
		return err
	}
	s.Allowed = s.Mirror.Compile.Addresses.Check
	s.Registration = func(cluster string) (o registration.Options, err error) {
		o.URL, o.CABundle, err = cfg.Registration.Of(cluster)
		return o, err
	}
	s.Logger.Info("controller begins", "namespace", s.Mirror.Namespace, "api", api.Host, "dryRun", s.DryRun)
	return controller.New(s).Run(ctx)
}

// missing returns the first name without a value; "": all have one.
func missing(required map[string]string) string {
	for _, name := range []string{"config", "directory", "namespace"} {
		if value, ok := required[name]; ok && value == "" {
			return name
		}
	}
	return ""
}

// settings are how replicas are asked. Files are read for each connection, so that they
// may be renewed.
func (a *adminFlags) settings() (controller.Replicas, error) {
	r := controller.Replicas{Addresses: a.replicas, Port: a.port, Scheme: "https"}
	if a.service != "" {
		var ok bool
		if r.Namespace, r.Service, ok = strings.Cut(a.service, "/"); !ok || r.Namespace == "" || r.Service == "" {
			return r, fmt.Errorf("--service must be NAMESPACE/NAME, not %q", a.service)
		}
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 3 * time.Second}
	r.Client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if a.plain {
		r.Scheme = "http"
		return r, nil
	}
	if _, err := a.tls(); err != nil {
		return r, err
	}
	transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		cfg, err := a.tls()
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{NetDialer: &net.Dialer{Timeout: 3 * time.Second}, Config: cfg}).DialContext(ctx, network, address)
	}
	return r, nil
}

func (a *adminFlags) tls() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.serverName}
	if a.ca != "" {
		text, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, fmt.Errorf("--admin-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--admin-ca: %s has no certificate", a.ca)
		}
	}
	if a.cert != "" || a.key != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, fmt.Errorf("--admin-cert and --admin-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
