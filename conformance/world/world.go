// SPDX-License-Identifier: Apache-2.0

// Package world plays random Cases: each admission once by an API server that calls
// the webhooks itself, and once by one that calls the shipped binary.
package world

import (
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"

	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/admission-dispatcher/dispatcher/conformance/binary"
	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/pair"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// World is the scripted webhooks and the binary, for one Case after another.
type World struct {
	binary    string
	authority *pki.Authority
	server    *script.Server
	places    atomic.Int64
}

// New starts the webhooks. The caller closes the World.
func New(path string) (*World, error) {
	authority, err := pki.NewAuthority("conformance authority")
	if err != nil {
		return nil, err
	}
	pair, err := authority.Issue(pki.OnLoopback("webhooks"))
	if err != nil {
		return nil, err
	}
	serving, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	return &World{binary: path, authority: authority, server: script.NewServer(serving)}, nil
}

// Close stops the webhooks.
func (w *World) Close() { w.server.Close() }

// Called returns how often webhooks answered in each Form.
func (w *World) Called() map[script.Form]int { return w.server.Called() }

// place returns a prefix that nobody else has, for names and paths.
func (w *World) place() string { return fmt.Sprintf("c%d-", w.places.Add(1)) }

// Clusters is a running dispatcher whose registry holds one cluster for each Case.
type Clusters struct {
	world   *World
	process *binary.Process
	dir     string
	scripts map[string]script.Script
	places  []string
	cases   []random.Case
}

// Start starts a dispatcher for all of cases. The caller stops it.
func (w *World) Start(ctx context.Context, cases []random.Case) (*Clusters, error) {
	dir, err := os.MkdirTemp("", "conformance-random-")
	if err != nil {
		return nil, err
	}
	c := &Clusters{world: w, dir: dir, cases: cases, scripts: map[string]script.Script{}}
	manifests := map[string][]byte{}
	for i := range cases {
		at := w.place()
		c.places = append(c.places, at)
		if manifests[at+"cluster.yaml"], err = w.manifest(at, &cases[i], c.scripts); err != nil {
			return nil, err
		}
	}
	w.server.Add(c.scripts)
	c.process, err = binary.Start(ctx, binary.Options{Path: w.binary, Dir: dir, Clients: w.authority, Manifests: manifests})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
}

// Stop ends the dispatcher.
func (c *Clusters) Stop() error {
	c.world.server.Remove(c.scripts)
	return errors.Join(c.process.Stop(), os.RemoveAll(c.dir))
}

// Played is one admission of a Case, decided both ways.
type Played struct {
	Admission   int
	Direct      caller.Result
	Through     caller.Result
	Differences []pair.Difference
}

// Play plays all admissions of the Case at index.
func (c *Clusters) Play(ctx context.Context, index int) ([]Played, error) {
	this := &c.cases[index]
	asIs := variant{mutating: this.Mutating, validating: this.Validating}
	o, err := c.world.oracle(this, asIs)
	if err != nil {
		return nil, err
	}
	defer o.close()
	through, considers, err := c.through(ctx, index)
	if err != nil {
		return nil, err
	}
	defer through.Close()
	var all []Played
	for i := range this.Admissions {
		a, err := played(&this.Admissions[i])
		if err != nil {
			return nil, err
		}
		p := pair.Pair{Direct: c.world.decide(o, this, asIs, a), Through: through.Play(a), Place: c.places[index], Considers: considers}
		for _, v := range standIns(this, a.Attributes()) {
			p.StandIns = append(p.StandIns, pair.StandIn{Rows: v.rows, Play: func() (pair.Oracle, error) { return c.world.instead(this, v, a) }})
		}
		differences, err := p.Differences()
		if err != nil {
			return nil, err
		}
		all = append(all, Played{i, p.Direct.Result, p.Through, differences})
	}
	return all, nil
}

// instead decides in a variant.
func (w *World) instead(c *random.Case, v variant, a caller.Admission) (pair.Oracle, error) {
	o, err := w.oracle(c, v)
	if err != nil {
		return pair.Oracle{}, err
	}
	defer o.close()
	return w.decide(o, c, v, a), nil
}
