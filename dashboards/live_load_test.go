// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
)

// caller is a cluster, with what it asks about and how long it waits.
type caller struct {
	cluster   string
	timeout   time.Duration
	rate      float64 // per second and replica
	resources []load.Resource
	phases    []history.Phase
	shows     string // whose certificate; default: its own
}

var (
	kubeSystem  = load.Resource{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "kube-system", User: "system:serviceaccount:kube-system:job"}
	deployments = load.Resource{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", User: "user"}
	configMaps  = load.Resource{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespace: "shop", User: "user"}
	bothPhases  = []history.Phase{history.Validating, history.Mutating}

	east  = caller{cluster: "east", timeout: time.Second, rate: 10, resources: []load.Resource{load.Pods, load.Pods, configMaps, kubeSystem}, phases: bothPhases}
	west  = caller{cluster: "west", timeout: time.Second, rate: 5, resources: []load.Resource{load.Pods}, phases: bothPhases}
	north = caller{cluster: "north", timeout: 10 * time.Second, rate: 4, resources: []load.Resource{deployments}}
	// lost is an API server of east that calls where north does.
	lost = caller{cluster: "north", timeout: time.Second, rate: 2, resources: []load.Resource{load.Pods}, shows: "east"}
)

// call has a cluster ask each replica until the returned function is called, or
// the test ends.
func (f *fleet) call(c caller) (end func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	security := &tls.Config{RootCAs: f.authority.Pool(), Certificates: []tls.Certificate{f.issue(cmp.Or(c.shows, c.cluster))}, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	var calls sync.WaitGroup
	for i, r := range f.replicas {
		calls.Go(func() {
			load.Run(ctx, load.Config{
				Address: r.front.Addr(), Start: time.Now(), Duration: time.Hour, Seed: uint64(i), Prefix: r.name,
				Clusters: []load.Cluster{{Name: c.cluster, TLS: security}},
				Rate:     c.rate, Timeout: c.timeout, Resources: c.resources, Phases: c.phases,
			})
		})
	}
	end = func() {
		cancel()
		calls.Wait()
	}
	f.t.Cleanup(end)
	return end
}
