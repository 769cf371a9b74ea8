// SPDX-License-Identifier: Apache-2.0

// Package zone is a DNS server on loopback that answers for every name alike, and
// fails in the ways of real ones.
package zone

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Server is the DNS server. It must be closed.
type Server struct {
	conn net.PacketConn
	done sync.WaitGroup
	over chan struct{}

	mu      sync.Mutex
	zone    Zone
	queries int
}

// Zone is what a Server answers. The zero Zone has no addresses: NXDOMAIN.
type Zone struct {
	Addresses []netip.Addr
	Missing   string        // one name that is NXDOMAIN, with its final dot
	Silent    bool          // no answer
	Failing   bool          // SERVFAIL
	Delay     time.Duration // of every answer
}

// Listen starts a Server with that Zone.
func Listen(z Zone) (*Server, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{conn: conn, zone: z, over: make(chan struct{})}
	s.done.Go(s.serve)
	return s, nil
}

// Address returns host:port.
func (s *Server) Address() string { return s.conn.LocalAddr().String() }

// Set replaces the Zone.
func (s *Server) Set(z Zone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone = z
}

// Queries returns how many questions have been asked.
func (s *Server) Queries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries
}

// Close stops the Server.
func (s *Server) Close() {
	close(s.over)
	_ = s.conn.Close()
	s.done.Wait()
}

func (s *Server) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		z := s.asked()
		answer := z.answer(buf[:n])
		if answer == nil {
			continue
		}
		s.done.Go(func() { s.send(answer, from, z.Delay) })
	}
}

// asked counts a question and returns the Zone to answer it from.
func (s *Server) asked() Zone {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries++
	return s.zone
}

func (s *Server) send(answer []byte, to net.Addr, delay time.Duration) {
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-s.over:
			return
		}
	}
	_, _ = s.conn.WriteTo(answer, to) // a lost answer is one that DNS has to live with
}

// answer returns the answer to a query, nil if there is none.
func (z *Zone) answer(query []byte) []byte {
	var m dnsmessage.Message
	if z.Silent || m.Unpack(query) != nil || len(m.Questions) == 0 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	switch {
	case z.Failing:
		m.RCode = dnsmessage.RCodeServerFailure
	case z.Addresses == nil || z.Missing == q.Name.String():
		m.RCode = dnsmessage.RCodeNameError
	default:
		m.Answers = z.records(q)
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

func (z *Zone) records(q dnsmessage.Question) []dnsmessage.Resource {
	var all []dnsmessage.Resource
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
	for _, ip := range z.Addresses {
		switch {
		case q.Type == dnsmessage.TypeA && ip.Is4():
			all = append(all, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}})
		case q.Type == dnsmessage.TypeAAAA && ip.Is6():
			all = append(all, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	return all
}

// Addresses parses IP addresses; one that is none is a mistake of the caller, and
// panics.
func Addresses(texts ...string) []netip.Addr {
	all := make([]netip.Addr, 0, len(texts))
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}
