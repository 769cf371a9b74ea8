// SPDX-License-Identifier: Apache-2.0

// The dispatcher-forward runs in a workload cluster whose kube-apiserver can present no
// credential: it is called as a Service, and calls the dispatcher as that cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // the image holds the binary alone

	"github.com/admission-dispatcher/dispatcher/forward"
)

// errUsage ends the command with 2.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	settings, err := parse(args, stderr)
	if err == nil {
		err = serve(ctx, settings)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
	return 1
}

func parse(args []string, stderr io.Writer) (forward.Settings, error) {
	flags := flag.NewFlagSet("dispatcher-forward", flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := forward.Settings{Logger: slog.New(slog.NewJSONHandler(stderr, nil))}
	to := flags.String("url", "", "the dispatcher's `URL`: https://HOST[:PORT], without a path")
	flags.StringVar(&s.Files.CA, "ca-file", "", "`FILE` with the authorities of the dispatcher's certificate. Default: public ones")
	flags.StringVar(&s.Files.ClientCert, "client-cert-file", "", "`FILE` with the cluster's client certificate, as its Cluster names it")
	flags.StringVar(&s.Files.ClientKey, "client-key-file", "", "`FILE` with its key")
	flags.StringVar(&s.Files.ServingCert, "cert-file", "", "`FILE` with the certificate of the Service, for the name NAME.NAMESPACE.svc")
	flags.StringVar(&s.Files.ServingKey, "key-file", "", "`FILE` with its key")
	flags.StringVar(&s.Listen, "listen", ":8443", "`ADDRESS` that the Service leads to")
	flags.StringVar(&s.AdminListen, "admin-listen", ":8081", "`ADDRESS` of /livez, /readyz and /metrics, without TLS")
	flags.IntVar(&s.Requests, "max-requests", forward.DefaultRequests, "requests at a time; more get 503")
	flags.IntVar(&s.Connections, "max-connections", forward.DefaultConnections, "connections at a time; more wait")
	flags.DurationVar(&s.LameDuck, "lame-duck", 10*time.Second, "how long to serve on when told to stop")
	if err := flags.Parse(args); err != nil {
		return s, errors.Join(errUsage, err)
	}
	for _, required := range []struct{ name, value string }{
		{"url", *to},
		{"client-cert-file", s.Files.ClientCert},
		{"client-key-file", s.Files.ClientKey},
		{"cert-file", s.Files.ServingCert},
		{"key-file", s.Files.ServingKey},
	} {
		if required.value == "" {
			_, _ = fmt.Fprintf(stderr, "error: --%s is required\n", required.name)
			return s, errUsage
		}
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(stderr, "error: unexpected argument %q\n", flags.Arg(0))
		return s, errUsage
	}
	var err error
	if s.URL, err = url.Parse(*to); err != nil {
		return s, fmt.Errorf("--url: %w", err)
	}
	return s, nil
}

func serve(ctx context.Context, s forward.Settings) error {
	f, err := forward.New(s)
	if err != nil {
		return err
	}
	return f.Run(ctx)
}
