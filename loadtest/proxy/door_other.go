// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proxy

import (
	"errors"
	"io"
	"net"
)

const hasBlackHole = false

// reserve finds a free port. Here nothing keeps it while nobody listens.
func reserve() (keeper io.Closer, address string, err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	return io.NopCloser(nil), l.Addr().String(), l.Close()
}

func dig(string) (stop func(), err error) { return nil, errors.ErrUnsupported }
