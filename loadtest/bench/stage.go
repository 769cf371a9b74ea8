// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// mostWebhooks is how many webhooks there are.
const mostWebhooks = 5

// caller is the cluster that calls for n webhooks, and the common name of its
// certificate.
func caller(webhooks int) string { return fmt.Sprintf("calls-%d", webhooks) }

// bare is the cluster that calls for n webhooks of rules alone: without selectors
// and without conditions.
func bare(webhooks int) string { return fmt.Sprintf("bare-%d", webhooks) }

// stage is where admissions go: the processes under test, all on one core, and
// their webhooks.
type stage struct {
	authority  *pki.Authority
	one        cores // for the process under test
	others     cores // for everybody else
	webhooks   string
	traces     string // URL of where they go
	dispatcher *target
	plain      *target
	floor      *target
	nginx      *target // nil without nginx
}

// target is a program that admissions are sent to.
type target struct {
	name string
	program
	address string
	admin   string // address of what a dispatcher tells of itself
	path    string // with %s for the cluster
}

// stage starts everything, once.
func (l *lab) stage() (*stage, error) {
	return remember(l, "start the dispatcher, its peers and the webhooks", func() (*stage, error) {
		s := &stage{}
		for _, step := range []func(*lab) error{s.split, s.issueAll, s.startWebhooks, s.register, s.startDispatcher, s.startPlain, s.startFloor, s.startNginx} {
			if err := step(l); err != nil {
				return nil, err
			}
		}
		return s, nil
	})
}

func (s *stage) split(*lab) (err error) {
	s.one, s.others, err = split()
	return err
}

// issueAll makes the certificates of all who need one.
func (s *stage) issueAll(l *lab) (err error) {
	const year = 365 * 24 * time.Hour // so that nothing is to be said against it
	if s.authority, err = pki.NewAuthorityUntil("benchmark", time.Now().Add(year)); err != nil {
		return err
	}
	if err := l.write("ca.crt", s.authority.PEM); err != nil {
		return err
	}
	names := []string{"serving", "webhook", bare(1), bare(mostWebhooks)}
	for n := range mostWebhooks {
		names = append(names, caller(n+1))
	}
	for _, name := range names {
		pair, err := s.authority.Issue(pki.OnLoopback(name, name))
		if err != nil {
			return err
		}
		if err := pair.Write(l.dir, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) startWebhooks(l *lab) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := l.start(s.others, nil, self, webhooksMode, "webhook.crt", "webhook.key")
	if err != nil {
		return err
	}
	s.webhooks, err = p.Await(func(line string) string { return line })
	return err
}

// register writes what the dispatcher reads: for each number of webhooks a cluster
// that has so many, and the bare ones.
func (s *stage) register(l *lab) error {
	if err := l.write("dispatcher.yaml", []byte(processConfiguration)); err != nil {
		return err
	}
	authority, err := json.Marshal(s.authority.PEM) // as caBundle has it: base64 in quotes
	if err != nil {
		return err
	}
	for n := 1; n <= mostWebhooks; n++ {
		if err := s.registerFor(l, caller(n), n, webhookManifest+restrictions, authority); err != nil {
			return err
		}
	}
	for _, n := range []int{1, mostWebhooks} {
		if err := s.registerFor(l, bare(n), n, webhookManifest, authority); err != nil {
			return err
		}
	}
	return nil
}

// registerFor registers n webhooks for a cluster of its own.
func (s *stage) registerFor(l *lab, cluster string, n int, manifest string, authority []byte) error {
	var out strings.Builder
	fmt.Fprintf(&out, clusterManifests, cluster)
	for i := range n {
		fmt.Fprintf(&out, manifest, i, s.webhooks, authority)
	}
	return l.write("registry/"+cluster+".yaml", []byte(out.String()))
}

// startDispatcher starts the dispatcher with all that it records.
func (s *stage) startDispatcher(l *lab) (err error) {
	if s.traces, err = l.startCollector(); err != nil {
		return err
	}
	s.dispatcher, err = l.startServe(serving{on: s.one, config: "dispatcher.yaml", environment: s.observed()})
	return err
}

// startPlain starts the plain dispatcher, with three webhooks.
func (s *stage) startPlain(l *lab) error {
	binary, err := l.build("loadtest/plain")
	if err != nil {
		return err
	}
	urls := make([]string, plainWebhooks)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://%s/policy-%d", s.webhooks, i)
	}
	p, err := l.start(s.one, nil, binary, "-cert", "serving.crt", "-key", "serving.key", "-ca", "ca.crt", "-webhooks", strings.Join(urls, ","))
	if err != nil {
		return err
	}
	address, err := p.Await(func(line string) string { return line })
	s.plain = &target{name: "plain", program: p, address: address, path: "/%s?timeout=10s"}
	return err
}

// startFloor starts the least that a proxy in Go can be.
func (s *stage) startFloor(l *lab) error {
	binary, err := l.build("loadtest/floor")
	if err != nil {
		return err
	}
	p, err := l.start(s.one, nil, binary, "-cert", "serving.crt", "-key", "serving.key", "-ca", "ca.crt", "-webhook", s.webhooks)
	if err != nil {
		return err
	}
	address, err := p.Await(func(line string) string { return line })
	s.floor = &target{name: "floor", program: p, address: address, path: "/%s?timeout=10s"}
	return err
}

// startNginx leaves nginx nil where it is not installed.
func (s *stage) startNginx(l *lab) error {
	p, address, err := l.startNginx(s.one, s.webhooks)
	if errors.Is(err, errNoNginx) {
		return nil
	}
	s.nginx = &target{name: "nginx", program: p, address: address, path: "/%s?timeout=10s"}
	return err
}

// everywhere are all processors that this process may use.
func (s *stage) everywhere() cores { return union(s.one, s.others) }
