// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// The bounds of what is read of a workload cluster. With more, what was read last stays.
const (
	maxListed   = 256     // configurations that have the label
	maxAnswer   = 2 << 20 // bytes of a list
	maxRead     = 1 << 20 // bytes of the webhooks of all
	workloadTry = 10 * time.Second
)

// workload is the API of a workload cluster. Each is asked by a goroutine of its own, so
// that none that hangs holds up another. A list and not a watch: an answer has a bound.
type workload struct {
	cluster string
	access  string // a sum of the kubeconfig
	stop    context.CancelFunc
	changed func()

	mu       sync.Mutex
	listed   []listedConfiguration // as it was last read
	sum      string                // of these
	answered bool
	err      error

	// What follows belongs to the goroutine of Run.
	held     string
	served   int
	rejected map[string]string
	memo     memo
}

// listedConfiguration is a configuration of a workload cluster.
type listedConfiguration struct {
	kind    string
	name    string
	created time.Time
	json    []byte // the list of webhooks
}

// newWorkload begins to ask the API that the kubeconfig names. It was accepted, so that it
// runs no program and names no file.
func (m *Mirror) newWorkload(ctx context.Context, cluster string, kubeconfig []byte) (*workload, error) {
	w := &workload{cluster: cluster, access: sum(string(kubeconfig)), changed: m.noteworthy, rejected: map[string]string{}}
	api, err := newWorkloadAPI(kubeconfig, m.settings.Compile.Addresses.Check)
	if err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	m.polling.Go(func() { w.run(ctx, api, m.settings.Poll) })
	return w, nil
}

// run asks until ctx is done.
func (w *workload) run(ctx context.Context, api *workloadAPI, every time.Duration) {
	defer api.http.CloseIdleConnections()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		listed, err := api.list(ctx)
		if ctx.Err() != nil {
			return
		}
		w.read(listed, err)
		timer.Reset(every/2 + rand.N(every)) // not all clusters at once
	}
}

// read takes what was read; with an error what was read before stays.
func (w *workload) read(listed []listedConfiguration, err error) {
	var parts []string
	for i := range listed {
		parts = append(parts, listed[i].kind, listed[i].name, string(listed[i].json))
	}
	now := sum(parts...)
	w.mu.Lock()
	news := err == nil && (!w.answered || w.sum != now)
	if w.err = err; err == nil {
		w.listed, w.sum, w.answered = listed, now, true
	}
	w.mu.Unlock()
	if news {
		w.changed()
	}
}

// state returns what was read last; ok is false if the API has not answered yet.
func (w *workload) state() (listed []listedConfiguration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listed, w.answered
}

// workloadAPI asks one API. It shares no connection, follows no redirect, and dials what
// webhooks may dial.
type workloadAPI struct {
	http   *http.Client
	server *url.URL
	token  string
}

func newWorkloadAPI(kubeconfig []byte, allowed func(netip.AddrPort) error) (*workloadAPI, error) {
	c, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be read") // its parser's words may hold a token
	}
	if c.ExecProvider != nil || c.AuthProvider != nil || c.BearerTokenFile != "" || c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" || c.Insecure {
		return nil, errors.New("the kubeconfig names a program or a file")
	}
	server, err := url.Parse(c.Host)
	if err != nil || server.Scheme != "https" {
		return nil, errors.New("the kubeconfig names no https server")
	}
	trust, err := rest.TLSConfigFor(c)
	if err != nil {
		return nil, errors.New("the certificates of the kubeconfig cannot be read")
	}
	dialer := &net.Dialer{Timeout: workloadTry, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return allowed(at)
	}}
	return &workloadAPI{server: server, token: c.BearerToken, http: &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: trust, TLSHandshakeTimeout: workloadTry, DisableCompression: true,
			MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 2 * DefaultPoll, MaxConnsPerHost: 2,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// list reads the configurations of both kinds that have the label.
func (a *workloadAPI) list(ctx context.Context) (listed []listedConfiguration, err error) {
	ctx, cancel := context.WithTimeout(ctx, workloadTry)
	defer cancel()
	for resource, kind := range map[string]string{"validatingwebhookconfigurations": validatingKind, "mutatingwebhookconfigurations": mutatingKind} {
		of, err := a.kind(ctx, resource, kind)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
		listed = append(listed, of...)
	}
	sortListed(listed)
	size := 0
	for i := range listed {
		size += len(listed[i].json)
	}
	if size > maxRead {
		return nil, fmt.Errorf("what has the label %s is longer than %d bytes", manifest.MirrorLabel, maxRead)
	}
	return listed, nil
}

func (a *workloadAPI) kind(ctx context.Context, resource, kind string) (listed []listedConfiguration, err error) {
	at := a.server.JoinPath("apis", "admissionregistration.k8s.io", "v1", resource)
	at.RawQuery = url.Values{"labelSelector": {manifest.MirrorLabel + "=true"}, "limit": {strconv.Itoa(maxListed + 1)}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "admission-dispatcher")
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	answer, err := a.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the API answers %d", answer.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return decodeListed(text, kind)
}

func decodeListed(text []byte, kind string) (listed []listedConfiguration, err error) {
	var page struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Webhooks json.RawMessage   `json:"webhooks"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, errors.New("the answer is no list")
	}
	if page.Metadata.Continue != "" || len(page.Items) > maxListed {
		return nil, fmt.Errorf("more than %d have the label %s", maxListed, manifest.MirrorLabel)
	}
	for i := range page.Items {
		o := &page.Items[i]
		if o.Metadata.Labels[manifest.MirrorLabel] == "true" { // whatever the API makes of the selector
			listed = append(listed, listedConfiguration{kind, o.Metadata.Name, o.Metadata.CreationTimestamp.Time, o.Webhooks})
		}
	}
	return listed, nil
}
