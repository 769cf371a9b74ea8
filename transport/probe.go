// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Probe connects to the Endpoints of a Target, TLS and its verification included,
// and keeps the connections for the calls to come. It returns nil if at least
// one answers within the timeout, and says what is wrong otherwise.
func (c *Client) Probe(t *Target, timeout time.Duration) error {
	endpoints := t.Endpoints()
	if len(endpoints) == 0 {
		return t.whyNoEndpoint()
	}
	results := make(chan error, len(endpoints))
	for _, e := range endpoints {
		c.running.Go(func() { results <- c.warm(e, timeout) })
	}
	var errs []error
	for range endpoints {
		err := <-results
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%s: %w", t.host, errors.Join(errs...))
}

// maxWarmed bounds the Endpoints that Warm connects to: the owner of a name decides
// how many addresses it has.
const maxWarmed = 16

// Warm connects to Endpoints that are new, TLS and its verification included, and
// keeps the connections for the calls to come. It returns after the connect timeout
// at the latest. The first call connects to an Endpoint that has not answered by
// then, or that is beyond the first 16.
func (c *Client) Warm(endpoints []*Endpoint) {
	var all sync.WaitGroup
	for _, e := range endpoints[:min(len(endpoints), maxWarmed)] {
		c.running.Add(1)
		all.Go(func() {
			defer c.running.Done()
			_ = c.warm(e, c.dialer.timeout) // the first call says what is wrong
		})
	}
	all.Wait()
}

// warm puts a new connection into the Endpoint's pool.
func (c *Client) warm(e *Endpoint, timeout time.Duration) error {
	c.adopt(e)
	cc, err := e.pool.AcquireConn(timeout, false)
	if err != nil {
		return err
	}
	if conn, ours := cc.Conn().(*conn); ours && conn.rest() {
		e.pool.ReleaseConn(cc)
		e.closeIfRetired()
	} else {
		e.pool.CloseConn(cc)
	}
	return nil
}
