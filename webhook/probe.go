// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
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

// warm puts a new connection into the Endpoint's pool.
func (c *Client) warm(e *Endpoint, timeout time.Duration) error {
	c.adopt(e)
	cc, err := e.pool.AcquireConn(timeout, false)
	if err != nil {
		return err
	}
	if conn, ours := cc.Conn().(*conn); ours && conn.rest() {
		e.pool.ReleaseConn(cc)
	} else {
		e.pool.CloseConn(cc)
	}
	return nil
}
