// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// access is the flags by which a cluster is reached.
type access struct {
	kubeconfig, context string
	timeout             time.Duration
}

func (a *access) flags(f *flag.FlagSet) {
	f.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster")
	f.StringVar(&a.context, "context", "", "`NAME` of a context in it. Default: its current context")
	f.DurationVar(&a.timeout, "timeout", time.Minute, "longest `TIME` that reading may take")
}

// client returns who asks the cluster. It only reads, at no more than 20 requests a
// second.
func (a *access) client() (dynamic.Interface, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: a.kubeconfig}
	api, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	api.WarningHandler, api.QPS, api.Burst = rest.NoWarnings{}, 20, 50
	api.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
	return dynamic.NewForConfig(api)
}

// readOnly is a transport that only reads.
type readOnly struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method != http.MethodGet {
		return nil, fmt.Errorf("%s is not sent: this command only reads", q.Method)
	}
	return r.RoundTripper.RoundTrip(q)
}

// parse reads flags. required are those that must be set.
func parse(f *flag.FlagSet, args []string, stderr io.Writer, required ...string) error {
	f.SetOutput(stderr)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errors.Join(errUsage, err)
	}
	if f.NArg() > 0 {
		_, _ = fmt.Fprintf(stderr, "error: what is %q?\n", f.Arg(0))
		return errUsage
	}
	for _, name := range required {
		if f.Lookup(name).Value.String() == "" {
			_, _ = fmt.Fprintf(stderr, "error: --%s is required\n", name)
			return errUsage
		}
	}
	return nil
}
