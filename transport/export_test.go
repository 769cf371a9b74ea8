// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Exchange is one exchange over c, of an answer of at most limit bytes, as an attempt
// makes it.
func Exchange(c net.Conn, limit int, call Call) (codec.Response, error) {
	e := &Endpoint{pool: fasthttp.HostClient{ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer, MaxResponseBodySize: limit}}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	payload, err := call.Message.Payload(false)
	if err == nil {
		req := &request{head: &call.Target.head, payload: payload, timeout: time.Second}
		_, err = talk(&e.pool, c, req, resp, time.Now().Add(time.Hour))
	}
	if err != nil {
		end := failed(err, &call, time.Hour)
		return end.resp, end.err
	}
	end := read(replyOf(resp, limit), &call)
	return end.resp, end.err
}
