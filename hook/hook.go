// SPDX-License-Identifier: Apache-2.0

// Package hook is what may be asked about an admission, and what comes of it.
package hook

import "github.com/admission-dispatcher/dispatcher/codec"

// Receiver is told what a call came to.
type Receiver interface {
	// Receive is called once, by the call's deadline, on any goroutine, also on
	// the one that started the call. It must not block.
	Receive(resp codec.Response, err error)
}
