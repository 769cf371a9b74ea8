// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// The bounds of asking the replicas.
const (
	maxReplicas    = 1000
	maxAsked       = 8 // at once
	replicaTimeout = 5 * time.Second
	maxStatusBytes = 32 << 20
)

// Replicas says where the replicas are and how they are asked.
type Replicas struct {
	// Service is the name of the dispatcher's Service and Namespace where it is: its ready
	// endpoints are asked at Port. "": only Addresses are.
	Service, Namespace string
	Port               int
	// Addresses are host:port of admin listeners besides.
	Addresses []string
	// Client asks; its Transport has the credential and whom to trust. Scheme is https or
	// http.
	Client *http.Client
	Scheme string
}

// fleet is what the replicas say.
type fleet struct {
	failure  string // why it is not known which there are; "": it is
	replicas []replica
}

// replica is one of them.
type replica struct {
	address string
	failure string // why it did not say anything; "": it did
	said    replicaStatus
	// namespaces are of said, by the name of the cluster, and pending by that of the
	// configuration.
	namespaces map[string]*namespaces
	pending    map[string][]pendingWebhook
}

// index makes the maps of what was said.
func (r *replica) index() {
	r.namespaces, r.pending = map[string]*namespaces{}, map[string][]pendingWebhook{}
	for _, c := range r.said.Clusters {
		r.namespaces[c.Name] = c.Namespaces
	}
	for _, p := range r.said.Pending {
		of, _, _ := strings.Cut(p.Webhook, "/")
		r.pending[of] = append(r.pending[of], p)
	}
	r.said.Clusters, r.said.Pending = nil, nil
}

// replicaStatus is what of /api/v1/status is looked at.
type replicaStatus struct {
	Problems []json.RawMessage `json:"problems"`
	Pending  []pendingWebhook  `json:"pending"`
	Clusters []struct {
		Name       string      `json:"name"`
		Namespaces *namespaces `json:"namespaces"`
	} `json:"clusters"`
	Mirror *mirrored `json:"mirror"`
}

type pendingWebhook struct {
	Webhook string `json:"webhook"` // configuration/name
	Reason  string `json:"reason"`
}

type namespaces struct {
	Synced     bool   `json:"synced"`
	Stale      bool   `json:"stale"`
	Error      string `json:"error"`
	Credential string `json:"credential"`
}

// mirrored is what the mirror beside a replica says.
type mirrored struct {
	Generation string `json:"generation"`
	Next       *struct {
		Generation string   `json:"generation"`
		Lost       []string `json:"lost"`
	} `json:"next"`
	Quarantined []struct {
		Generation string `json:"generation"`
		Reason     string `json:"reason"`
	} `json:"quarantined"`
}

// generation is the generation that the replica serves; "": it is not known.
func (r *replica) generation() string {
	if r.failure != "" || r.said.Mirror == nil || len(r.said.Problems) > 0 {
		return ""
	}
	return r.said.Mirror.Generation
}

// isKnown reports whether replicas can be asked at all.
func (r *Replicas) isKnown() bool { return r.Service != "" || len(r.Addresses) > 0 }

var endpointSlices = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}

// ask asks all ready replicas.
func (r *Replicas) ask(ctx context.Context, api dynamic.Interface) fleet {
	addresses, err := r.ready(ctx, api)
	if err != nil {
		return fleet{failure: "the EndpointSlices of Service " + r.Service + " cannot be read"}
	}
	f := fleet{replicas: make([]replica, len(addresses))}
	var running sync.WaitGroup
	places := make(chan struct{}, maxAsked)
	for i, address := range addresses {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			f.replicas[i] = r.one(ctx, address)
		})
	}
	running.Wait()
	return f
}

// ready returns the addresses of the admin listeners of those that are ready.
func (r *Replicas) ready(ctx context.Context, api dynamic.Interface) ([]string, error) {
	addresses := slices.Clone(r.Addresses)
	if r.Service != "" {
		ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
		defer cancel()
		list, err := api.Resource(endpointSlices).Namespace(r.Namespace).
			List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + r.Service, Limit: maxReplicas, ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		pods := map[types.UID]bool{} // one with two families of addresses is in two slices
		for i := range list.Items {
			text, err := list.Items[i].MarshalJSON()
			if err != nil {
				return nil, err
			}
			var s discoveryv1.EndpointSlice
			if err := json.Unmarshal(text, &s); err != nil {
				return nil, err
			}
			for _, e := range s.Endpoints {
				if e.TargetRef != nil && e.TargetRef.UID != "" {
					if pods[e.TargetRef.UID] {
						continue
					}
					pods[e.TargetRef.UID] = true
				}
				if len(e.Addresses) > 0 && valueOf(e.Conditions.Ready, true) {
					addresses = append(addresses, net.JoinHostPort(e.Addresses[0], fmt.Sprint(r.Port)))
				}
			}
		}
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	return addresses[:min(len(addresses), maxReplicas)], nil
}

// one asks one replica.
func (r *Replicas) one(ctx context.Context, address string) replica {
	out := replica{address: address}
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Scheme+"://"+address+"/api/v1/status", nil)
	if err != nil {
		out.failure = "its address cannot be asked"
		return out
	}
	answer, err := r.Client.Do(request)
	if err != nil {
		out.failure = silence(err)
		return out
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		out.failure = fmt.Sprintf("answers with HTTP status %d", answer.StatusCode)
		return out
	}
	out.read(answer.Body, maxStatusBytes)
	return out
}

// read reads what a replica says, of which at most most bytes.
func (r *replica) read(body io.Reader, most int64) {
	text := &io.LimitedReader{R: body, N: most}
	if err := json.NewDecoder(text).Decode(&r.said); err != nil {
		r.failure, r.said = "answers with something else than its status", replicaStatus{}
		if text.N <= 0 {
			r.failure = fmt.Sprintf("answers with more than %d bytes", most)
		}
	}
	r.index()
}

// silence says why a replica did not answer, in words that stay the same.
func silence(err error) string {
	timeout, timed := errors.AsType[net.Error](err)
	switch {
	case isTLS(err):
		return "and the controller do not trust each other's certificates"
	case errors.Is(err, context.DeadlineExceeded), timed && timeout.Timeout():
		return "does not answer in time"
	}
	return "cannot be reached"
}

// failures counts why replicas did not answer, in one line; "": all did.
func (f *fleet) failures() string {
	count := map[string]int{}
	for i := range f.replicas {
		if why := f.replicas[i].failure; why != "" {
			count[why]++
		}
	}
	var lines []string
	for why, n := range count {
		lines = append(lines, fmt.Sprintf("%d %s", n, why))
	}
	slices.SortFunc(lines, cmp.Compare[string])
	return joined(lines)
}
