// SPDX-License-Identifier: Apache-2.0

// Package load plays kube-apiservers: clusters that ask for admissions at a rate
// that does not depend on how the answers come (an open loop), and record every
// call.
package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// Config is the configuration of one run.
type Config struct {
	Address  string    // host:port of the dispatcher
	Start    time.Time // times of the record are since then
	Clusters []Cluster
	Rate     float64 // calls per second of a Cluster with Weight 1
	Duration time.Duration
	Timeout  time.Duration // as in ?timeout=, whole seconds
	Seed     uint64
	// Resources are what the calls are about, in turn; none: pods.
	Resources []Resource
	Phases    []history.Phase // in turn; none: validating
	// Template, if not nil, is what is sent, in place of Resources.
	Template *Template
	// Bytes is the size of the objects, as they are sent; 0: about 600. Filler is
	// what most of them is.
	Bytes  int
	Filler Filler
	// Webhook, if not empty, is a path that is asked directly, with no dispatcher in
	// between.
	Webhook string
	// Prefix makes uids unique among runs of one record.
	Prefix string
	// Observe, if not nil, is told of each call when it has ended, by several
	// goroutines. The call is borrowed until it returns.
	Observe func(*history.Call)
}

// Filler is what an object is filled with up to its size.
type Filler uint8

// The fillers.
const (
	Letters Filler = iota // one string
	Escapes               // a string of characters that kube-apiserver writes as six bytes each
	Zeros                 // a list of numbers
)

// Cluster is one caller.
type Cluster struct {
	Name   string
	TLS    *tls.Config // its certificate, if it has one, and the authorities of the dispatcher
	Token  string      // sent as a bearer token; empty: none is
	Weight float64     // of its rate; 0: 1
}

// Resource is what a call is about.
type Resource struct {
	Group, Version, Resource, Kind, Namespace string
	User                                      string
	Groups                                    []string
	SubResource                               string
	Operation                                 string // empty: CREATE
	Exempt                                    bool   // a bypass holds
}

// Pods are what most calls are about.
var Pods = Resource{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "shop", User: "user"}

// Run makes the calls and returns their record when the last has ended. ctx ends
// it early.
func Run(ctx context.Context, cfg Config) []history.Call {
	g := generator{cfg: cfg, pulse: newPulse(cfg.Start)}
	switch {
	case g.cfg.Template != nil:
		g.cfg.Resources = []Resource{g.cfg.Template.resource}
	case len(g.cfg.Resources) == 0:
		g.cfg.Resources = []Resource{Pods}
	}
	if len(g.cfg.Phases) == 0 {
		g.cfg.Phases = []history.Phase{history.Validating}
	}
	beating, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg, pulse sync.WaitGroup
	pulse.Go(func() { g.pulse.Run(beating) })
	for i, c := range cfg.Clusters {
		wg.Go(func() { g.play(ctx, c, rand.New(rand.NewPCG(cfg.Seed, uint64(i)))) })
	}
	wg.Wait()
	end()
	pulse.Wait()
	return g.calls
}

type generator struct {
	cfg   Config
	pulse *pulse
	mu    sync.Mutex
	calls []history.Call
}

// play makes one cluster's calls at random times (a Poisson process).
func (g *generator) play(ctx context.Context, c Cluster, draw *rand.Rand) {
	client := &fasthttp.HostClient{
		Addr: g.cfg.Address, IsTLS: true, MaxConns: 1 << 16, MaxIdleConnDuration: 30 * time.Second,
		DialTimeout:               func(address string, timeout time.Duration) (net.Conn, error) { return g.dial(c.TLS, address, timeout) },
		MaxIdemponentCallAttempts: 1, ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10,
		RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
	}
	defer client.CloseIdleConnections()
	rate := g.cfg.Rate
	if c.Weight > 0 {
		rate *= c.Weight
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	begin := time.Now()
	next := time.Duration(0)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; next < g.cfg.Duration; n++ {
		timer.Reset(time.Until(begin.Add(next)))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		intended := begin.Add(next).Sub(g.cfg.Start)
		wg.Go(func() { g.record(g.call(client, &c, n, intended)) })
		next += time.Duration(draw.ExpFloat64() / rate * float64(time.Second))
	}
}

func (g *generator) record(c history.Call) {
	if g.cfg.Observe != nil {
		g.cfg.Observe(&c)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, c)
}

// call makes the nth call of a cluster.
func (g *generator) call(client *fasthttp.HostClient, from *Cluster, n int, intended time.Duration) history.Call {
	cluster := from.Name
	resource := g.cfg.Resources[n%len(g.cfg.Resources)]
	phase := g.cfg.Phases[n/len(g.cfg.Resources)%len(g.cfg.Phases)]
	c := history.Call{
		UID:       fmt.Sprintf("%s-%s-%d", g.cfg.Prefix, cluster, n),
		Cluster:   cluster,
		Phase:     phase,
		Resource:  resource.Resource,
		Namespace: resource.Namespace,
		Exempt:    resource.Exempt,
		Intended:  intended,
		Timeout:   g.cfg.Timeout,
	}
	body, object := g.review(&c, resource)
	c.BodyHash = history.Hash(object)
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI(fmt.Sprintf("https://%s/%s?timeout=%ds", g.cfg.Address, g.path(cluster, phase), int(g.cfg.Timeout.Seconds())))
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	if from.Token != "" {
		req.Header.Set("Authorization", "Bearer "+from.Token)
	}
	req.SetBodyRaw(body)
	c.Sent = time.Since(g.cfg.Start)
	err := errGone
	for end := time.Now().Add(g.cfg.Timeout); errors.Is(err, errGone); {
		err = client.DoDeadline(req, resp, end)
	}
	c.Done = time.Since(g.cfg.Start)
	c.Stall, c.LastStall = g.pulse.stood(c.Sent, c.Done), g.pulse.stood(max(c.Sent, c.Done-atLast), c.Done)
	if err != nil {
		c.Err, c.GaveUp = err.Error(), isTimeout(err)
		return c
	}
	c.Status = resp.StatusCode()
	read(&c, resp.Body())
	return c
}

// review returns what the call sends, and the object in it.
func (g *generator) review(c *history.Call, r Resource) (body, object []byte) {
	if g.cfg.Template != nil {
		return g.cfg.Template.review(c)
	}
	return review(c, r, g.cfg.Filler.text(g.cfg.Bytes-200))
}

// isTimeout reports whether a call has ended because the caller's time was over.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// path returns what is asked.
func (g *generator) path(cluster string, phase history.Phase) string {
	if g.cfg.Webhook != "" {
		return g.cfg.Webhook
	}
	return fmt.Sprintf("v1/clusters/%s/%s", cluster, paths[phase])
}

var paths = map[history.Phase]string{history.Validating: "validate", history.Mutating: "mutate"}
