// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
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
	rate                float64
	duration, timeout   time.Duration
	bytes               int
	seed                uint64
	json                bool
}

func newLoadtest() *cobra.Command {
	var l loadtesting
	cmd := &cobra.Command{
		Use:   "loadtest --url URL --cluster NAME --cert FILE --key FILE",
		Short: "Ask a dispatcher for admissions at a steady rate, and say how it answers",
		Long: `Ask a dispatcher for admissions as the kube-apiserver of a cluster would, at a
rate that does not depend on how the answers come, and say how they came. Every
call is the creation of a pod that nobody has; webhooks are really called.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&l.url, "url", "", "the dispatcher, such as https://dispatcher.example.com:8443")
	f.StringVar(&l.cluster, "cluster", "", "the Cluster to ask as")
	f.StringVar(&l.phase, "phase", "validate", "validate or mutate")
	f.StringVar(&l.cert, "cert", "", "the cluster's client certificate")
	f.StringVar(&l.key, "key", "", "its key")
	f.StringVar(&l.ca, "ca", "", "authority of the dispatcher's certificate (default the system's)")
	f.Float64Var(&l.rate, "rate", 50, "calls per second")
	f.DurationVar(&l.duration, "duration", 10*time.Second, "how long")
	f.DurationVar(&l.timeout, "timeout", 10*time.Second, "what the caller allows, whole seconds")
	f.IntVar(&l.bytes, "bytes", 6000, "size of each object")
	f.Uint64Var(&l.seed, "seed", 1, "of the times between two calls")
	f.BoolVar(&l.json, "json", false, "print JSON instead of a table")
	for _, name := range []string{"url", "cluster", "cert", "key"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}

func (l *loadtesting) run(cmd *cobra.Command) error {
	cfg, err := l.config()
	if err != nil {
		return err
	}
	cmd.PrintErrf("%v calls per second for %v\n", l.rate, l.duration)
	done := l.tell(cmd.ErrOrStderr(), &cfg)
	calls := load.Run(cmd.Context(), cfg)
	done()
	summaries := load.Summarize(calls)
	if !l.json {
		return load.WriteTable(cmd.OutOrStdout(), summaries[:1])
	}
	out := json.NewEncoder(cmd.OutOrStdout())
	out.SetIndent("", "  ")
	return out.Encode(summaries[0])
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

func (l *loadtesting) config() (load.Config, error) {
	phase, ok := parsePhase(l.phase)
	if !ok {
		return load.Config{}, fmt.Errorf("--phase must be validate or mutate, not %q", l.phase)
	}
	u, err := url.Parse(l.url)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return load.Config{}, fmt.Errorf("--url %q is not https://host[:port]", l.url)
	}
	if l.rate <= 0 || l.duration <= 0 || l.timeout < time.Second {
		return load.Config{}, errors.New("--rate and --duration must be above 0, --timeout at least 1s")
	}
	security, err := l.tls(u.Hostname())
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
		Clusters: []load.Cluster{{Name: l.cluster, TLS: security}},
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
	certificate, err := tls.LoadX509KeyPair(l.cert, l.key)
	if err != nil {
		return nil, fmt.Errorf("--cert, --key: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, Certificates: []tls.Certificate{certificate}}
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
