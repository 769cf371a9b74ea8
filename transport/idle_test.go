// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// opened is an Endpoint whose connections go nowhere, and tells which of them are open.
func opened(most int) (e *Endpoint, isOpen func(*conn) bool) {
	far := map[*conn]net.Conn{}
	e = &Endpoint{connections: connections{most: most}}
	e.connect = func(time.Duration) (*conn, error) {
		near, other := net.Pipe()
		c := newConn(&records{Conn: near}, tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "policy"}))
		far[c] = other
		return c, nil
	}
	return e, func(c *conn) bool {
		_ = far[c].SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := far[c].Read(make([]byte, 1))
		return isTimeout(err)
	}
}

// The connection that was used last is used next, and each is closed once it has been
// idle for a minute, whatever happens to the others.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, isOpen := opened(3)
		var all [3]*conn
		for i := range all {
			all[i], _ = e.open(time.Second)
		}
		if _, err := e.open(time.Second); err == nil {
			t.Error("a fourth one was opened")
		}
		for _, c := range all {
			if !e.connections.keep(c, time.Now()) {
				t.Fatal("it is not kept")
			}
			<-time.After(maxIdle / 4)
		}
		last := e.connections.take()
		if last != all[2] {
			t.Error("it is not the one that was used last")
		}
		<-time.After(maxIdle/4 + time.Second)
		synctest.Wait()
		for i, c := range all {
			if want := i > 0; isOpen(c) != want {
				t.Errorf("connection %d is open: %v", i, !want)
			}
		}
		if n := e.connections.count(); n != 2 {
			t.Errorf("%d connections are open", n)
		}
		<-time.After(maxIdle / 4)
		synctest.Wait()
		if isOpen(all[1]) || !isOpen(last) {
			t.Error("the next one is not closed when it is its turn, or the one in use is")
		}
		e.connections.close()
		if e.connections.keep(last, time.Now()) {
			t.Error("one is kept although the Endpoint is gone")
		}
		e.drop(last)
		if n := e.connections.count(); n != 0 || isOpen(last) {
			t.Errorf("%d connections are open", n)
		}
	})
}

// An Endpoint that is gone closes those that are idle.
func TestIdleConnectionsOfAnEndpointThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, isOpen := opened(1)
		c, _ := e.open(time.Second)
		e.connections.keep(c, time.Now())
		if e.connections.close(); isOpen(c) || e.connections.take() != nil || e.connections.count() != 0 {
			t.Error("it is still there")
		}
	})
}
