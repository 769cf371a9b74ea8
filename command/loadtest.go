// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
)

// loadtesting is what the flags ask for.
type loadtesting struct {
	url, cluster, phase string
	ca, cert, key       string
	token, review       string // files
	rate                float64
	duration, timeout   time.Duration
	bytes               int
	seed                uint64
	format              *output
}

func newLoadtest() *cobra.Command {
	var l loadtesting
	cmd := &cobra.Command{
		Use:   "loadtest --url URL --cluster NAME [--cert FILE --key FILE | --token-file FILE] [-f REVIEW]",
		Short: "Ask a dispatcher for admissions at a steady rate, and say how it answers",
		Long: `Ask a dispatcher for admissions as the kube-apiserver of a cluster would, at a
rate that does not depend on how the answers come, and say how they came. Every
call is the creation of a pod that nobody has, or the AdmissionReview of -f, each
time under another uid; webhooks are really called. Without a certificate and a
token the call is anonymous.

Latencies are from the time at which a call was due, of the calls that were
answered. The exit code is 1 if any call was lost: it was not answered, or with
another status than 200.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&l.url, "url", "", "the dispatcher, such as https://dispatcher.example.com:8443")
	f.StringVar(&l.cluster, "cluster", "", "the Cluster to ask as")
	f.StringVar(&l.phase, "phase", "validate", "validate or mutate")
	f.StringVar(&l.cert, "cert", "", "the cluster's client certificate")
	f.StringVar(&l.key, "key", "", "its key")
	f.StringVar(&l.token, "token-file", "", "file of the cluster's bearer token")
	f.StringVarP(&l.review, "file", "f", "", "an AdmissionReview in JSON to send; - is standard input")
	f.StringVar(&l.ca, "ca", "", "authority of the dispatcher's certificate (default the system's)")
	f.Float64Var(&l.rate, "rate", 50, "calls per second")
	f.DurationVar(&l.duration, "duration", 10*time.Second, "how long")
	f.DurationVar(&l.timeout, "timeout", 10*time.Second, "what the caller allows, whole seconds")
	f.IntVar(&l.bytes, "bytes", 6000, "size of each object, about")
	f.Uint64Var(&l.seed, "seed", 1, "of the times between two calls")
	l.format = outputFlag(cmd)
	for _, name := range []string{"url", "cluster"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	cmd.MarkFlagsRequiredTogether("cert", "key")
	cmd.MarkFlagsMutuallyExclusive("file", "bytes")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := l.validate(); err != nil {
			return err
		}
		return cobra.NoArgs(cmd, args)
	}
	return cmd
}

func (l *loadtesting) run(cmd *cobra.Command) error {
	cfg, err := l.config(cmd.InOrStdin())
	if err != nil {
		return err
	}
	cmd.PrintErrf("%v calls per second for %v\n", l.rate, l.duration)
	done := l.tell(cmd.ErrOrStderr(), &cfg)
	calls := load.Run(cmd.Context(), cfg)
	done()
	all := load.Summarize(calls)[0]
	if *l.format == asJSON {
		err = printJSON(cmd.OutOrStdout(), all)
	} else {
		err = load.WriteText(cmd.OutOrStdout(), &all)
	}
	if err == nil && all.Lost > 0 {
		err = errSaid
	}
	return err
}

// tell writes every second, on one line of a terminal, how far the run is. What it
// returns ends that. Where nobody is looking it writes nothing.
func (l *loadtesting) tell(w io.Writer, cfg *load.Config) (done func()) {
	if !isTerminal(w) {
		return func() {}
	}
	p, end := load.NewProgress(), make(chan struct{})
	cfg.Observe = p.Add
	var telling sync.WaitGroup
	telling.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-end:
				_, _ = fmt.Fprintln(w)
				return
			case <-tick.C:
				_, _ = fmt.Fprintf(w, "\r\x1b[K%s", p.Line(time.Since(cfg.Start), l.duration))
			}
		}
	})
	return func() { close(end); telling.Wait() }
}

// validate checks the flags by themselves.
func (l *loadtesting) validate() error {
	if _, ok := parsePhase(l.phase); !ok {
		return fmt.Errorf("--phase must be validate or mutate, not %q", l.phase)
	}
	if u, err := url.Parse(l.url); l.url != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("--url %q is not https://host[:port]", l.url)
	}
	if l.rate <= 0 || l.duration <= 0 || l.timeout < time.Second {
		return errors.New("--rate and --duration must be above 0, --timeout at least 1s")
	}
	return nil
}

// config reads what the flags name, which have been validated.
func (l *loadtesting) config(stdin io.Reader) (load.Config, error) {
	phase, _ := parsePhase(l.phase)
	u, err := url.Parse(l.url)
	if err != nil {
		return load.Config{}, err
	}
	from := load.Cluster{Name: l.cluster}
	if l.token != "" {
		token, err := os.ReadFile(l.token)
		if err != nil {
			return load.Config{}, fmt.Errorf("--token-file: %w", err)
		}
		from.Token = strings.TrimSpace(string(token))
	}
	var template *load.Template
	if l.review != "" {
		data, err := readFile(stdin, l.review)
		if err == nil {
			template, err = load.ParseTemplate(data)
		}
		if err != nil {
			return load.Config{}, fmt.Errorf("-f %s: %w", l.review, err)
		}
	}
	from.TLS, err = l.tls(u.Hostname())
	if err != nil {
		return load.Config{}, err
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	phases := map[string]history.Phase{"validate": history.Validating, "mutate": history.Mutating}
	return load.Config{
		Address:  u.Hostname() + ":" + port,
		Start:    time.Now(),
		Clusters: []load.Cluster{from},
		Template: template,
		Rate:     l.rate,
		Duration: l.duration,
		Timeout:  l.timeout,
		Seed:     l.seed,
		Phases:   []history.Phase{phases[phase.String()]},
		Bytes:    l.bytes,
		Prefix:   fmt.Sprintf("loadtest-%d", time.Now().UnixNano()),
	}, nil
}

func (l *loadtesting) tls(host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if l.cert != "" {
		certificate, err := tls.LoadX509KeyPair(l.cert, l.key)
		if err != nil {
			return nil, fmt.Errorf("--cert, --key: %w", err)
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	if l.ca == "" {
		return c, nil
	}
	pem, err := os.ReadFile(l.ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca: %s holds no certificate", l.ca)
	}
	return c, nil
}
