// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admission-dispatcher/dispatcher/fleet"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/mirror"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
)

// runSync mirrors until ctx is done.
func runSync(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("dispatcher-kube sync", flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := mirror.Settings{Logger: slog.New(slog.NewJSONHandler(stderr, nil))}
	path := flags.String("config", "", "the dispatcher's `FILE`, a DispatcherConfiguration: objects are judged as the dispatcher will")
	flags.StringVar(&s.Directory, "directory", "", "`DIRECTORY` that is kept; the dispatcher's source is the link \"current\" in it")
	flags.StringVar(&s.Namespace, "namespace", "", "`NAMESPACE` of the Secrets and ConfigMaps that objects name")
	flags.StringVar(&s.Cell, "cell", "", "`CELL` whose Clusters are mirrored. Default: the cell of the configuration; without any all are")
	service := flags.String("service", "", "`NAMESPACE/NAME` of the dispatcher's own Service: its ready endpoints are counted, and DIRECTORY/"+fleet.FileName+" says how many replicas there are (fleet.file of the configuration). Needs the rights get, list and watch on EndpointSlices")
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig `FILE` of the API. Default: that of the cluster that this runs in")
	flags.DurationVar(&s.Spread, "activation-spread", mirror.DefaultSpread, "longest random delay before a change is served, so that not all replicas have it at once")
	flags.DurationVar(&s.Probation, "probation", mirror.DefaultProbation, "how long the dispatcher must stay alive with a new generation")
	flags.DurationVar(&s.Poll, "mirror-interval", mirror.DefaultPoll, "how often the API of a workload cluster is asked whose Cluster has spec.mirror")
	flags.StringVar(&s.Confirm, "confirm", "", "`GENERATION` that may be served although it has lost much of the one before")
	live := flags.String("live", "", "`URL` of the dispatcher's /livez, at a loopback address. Default: nobody is asked, and a generation is on trial until this process restarts")
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	for name, value := range map[string]string{"config": *path, "directory": s.Directory, "namespace": s.Namespace} {
		if value == "" {
			_, _ = fmt.Fprintf(stderr, "error: --%s is required\n", name)
			return errUsage
		}
	}
	if *service != "" {
		var err error
		if s.Service, err = mirror.ParseService(*service); err != nil {
			_, _ = fmt.Fprintf(stderr, "error: --service: %v\n", err)
			return errUsage
		}
	}
	_, api, err := follow(&s, *path, *kubeconfig)
	if err != nil {
		return err
	}
	if *live != "" {
		if s.Live, err = asker(*live); err != nil {
			return fmt.Errorf("--live: %w", err)
		}
	}
	s.Logger.Info("mirror begins", "directory", s.Directory, "namespace", s.Namespace, "api", api.Host)
	return mirror.New(s).Run(ctx)
}

// follow fills in how the API is followed: as the dispatcher's configuration judges
// objects.
func follow(s *mirror.Settings, path, kubeconfig string) (*config.Config, *rest.Config, error) {
	cfg, problems := config.Load(path)
	if len(problems) > 0 {
		return nil, nil, fmt.Errorf("%s", problems[0])
	}
	compiledIn, err := plugin.NewSet(kubernetes.Plugins()...)
	if err != nil {
		return nil, nil, err
	}
	if s.Cell == "" {
		s.Cell = cfg.Cell
	}
	if s.Cell != cfg.Cell && cfg.Cell != "" {
		return nil, nil, fmt.Errorf("--cell %s: the dispatcher of %s serves cell %s", s.Cell, path, cfg.Cell)
	}
	settings := cfg.Registry(nil, nil)
	s.Compile, s.FileRoots = settings.Compile, settings.FileRoots
	s.Compile.Plugins = compiledIn
	api, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	api.WarningHandler = rest.NoWarnings{}
	s.Client, err = dynamic.NewForConfig(api)
	return cfg, api, err
}

// asker asks whether a URL of this host answers 200. As for a kubelet's probe, the
// certificate may be in any name: what answers at an address of the own host, which is
// required, is the dispatcher beside.
func asker(address string) (func(context.Context) error, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(at.Hostname()); at.Scheme != "http" && at.Scheme != "https" || err != nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%q must be a URL such as https://127.0.0.1:8081/livez, at a loopback address", address)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", answer.Status)
		}
		return nil
	}, nil
}
