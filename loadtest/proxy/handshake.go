// SPDX-License-Identifier: Apache-2.0

package proxy

import "encoding/binary"

// Content types of TLS records (RFC 8446, section 5.1).
const (
	changeCipherSpec = 20
	handshakeMessage = 22
	applicationData  = 23

	recordHeader = 5
)

// handshake finds in a client's bytes the end of a TLS handshake. What does not
// start as TLS has none. It takes a client that sends each handshake message in
// a record of its own, as crypto/tls does.
type handshake struct {
	started, over bool
	switched      bool // a change of ciphers was announced
	header        [recordHeader]byte
	have          int // bytes of the header
	left          int // bytes of the record that are to come
}

// take returns how many of b's first bytes belong to the handshake.
func (h *handshake) take(b []byte) (n int) {
	if !h.started && len(b) > 0 {
		h.started, h.over = true, b[0] != handshakeMessage
	}
	for n < len(b) && !h.over {
		if h.have < recordHeader {
			k := copy(h.header[h.have:], b[n:])
			h.have, n = h.have+k, n+k
			h.left = int(binary.BigEndian.Uint16(h.header[3:]))
			continue
		}
		k := min(h.left, len(b)-n)
		h.left, n = h.left-k, n+k
		if h.left == 0 {
			h.record(int(binary.BigEndian.Uint16(h.header[3:])))
			h.have = 0
		}
	}
	return n
}

// record looks at a whole record of n bytes. Finished is the client's last
// message. It is encrypted, but told by its size: no request and no other
// message is that short.
func (h *handshake) record(n int) {
	switch h.header[0] {
	case changeCipherSpec:
		h.switched = true
	case handshakeMessage: // until TLS 1.2
		h.over = h.switched && n < 100
	case applicationData: // TLS 1.3: header, hash, content type, tag
		h.over = n == 4+32+1+16 || n == 4+48+1+16
	}
}
