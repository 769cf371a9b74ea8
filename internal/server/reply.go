// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// reply answers an admission in the encoding that it came in: always 200, whatever the verdict, because any
// other status is a failed call to kube-apiserver. It never sends Retry-After:
// kube-apiserver would hold the user's request and call again.
func (s *Server) reply(ctx *fasthttp.RequestCtx, review *codec.Review, response *codec.Response) {
	ctx.SetContentType(review.Encoding.ContentType())
	body := ctx.Response.SwapBody(nil)
	ctx.Response.SwapBody(review.AppendAnswer(body[:0], response))
	aged := connOf(ctx).isAged()
	if aged {
		s.aged.Add(1)
	}
	if aged || s.lame.Load() {
		ctx.SetConnectionClose()
	}
}

// maxQuoted bounds what an answer or a record tells about a request, in bytes.
const maxQuoted = 256

// printable returns text cut to maxQuoted, with anything that is not printable
// ASCII replaced.
func printable(text string) string {
	out := []byte(text[:min(len(text), maxQuoted)])
	for i, c := range out {
		if c < ' ' || c > '~' {
			out[i] = '?'
		}
	}
	return string(out)
}
