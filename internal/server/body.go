// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// takeOver ends fasthttp's part of the request: from here on the body is ours to
// read. It returns what of it came along with the head, perhaps with bytes of the
// next request behind it.
func takeOver(ctx *fasthttp.RequestCtx, c *conn) []byte {
	c.handed = false
	return ctx.Request.SwapBody(nil)
}

// intake is the body of one request on its way in. Its memory grows with what has
// really come, and its cluster's holder accounts for it.
type intake struct {
	buffers   *buffers
	holder    *holder
	limit     int       // of bytes, also after decompression
	until     time.Time // when the body must be there
	continues bool      // the caller waits for "100 Continue"
	data      []byte
	taken     bool // data is accounted for
}

// headBytes is how much of a body that is not read to the end is looked at for its
// uid. kube-apiserver writes that within the first 150 bytes.
const headBytes = 4 << 10

// receive reads the body, where data is what came along with the head. Where
// it fails, data is what there is of the body: no more than headBytes if the reason
// was there before it was read.
func (in *intake) receive(c *conn) refusal {
	in.data, c.pending = cutBody(in.data, c.announced, c.pending)
	if len(in.data) < c.announced {
		if err := c.Conn.SetReadDeadline(in.until); err != nil {
			return cutShort
		}
	}
	if len(in.data) == 0 && c.announced > 0 {
		if r := in.await(c, c.announced <= in.limit); r != accepted {
			return r
		}
	}
	r, want := accepted, c.announced
	if want > in.limit {
		r = tooLarge
	} else if in.taken = in.holder.take(cap(in.data), in.until); !in.taken {
		r = noMemory
	}
	if r != accepted {
		want = min(want, headBytes)
	}
	for len(in.data) < want {
		if len(in.data) == cap(in.data) && !in.grow(min(want, growth*cap(in.data))) {
			return noMemory
		}
		n, err := c.Read(in.data[len(in.data):min(cap(in.data), want)])
		if in.data = in.data[:len(in.data)+n]; err != nil && r == accepted {
			r = unread(err)
		}
		if err != nil {
			return r
		}
	}
	return r
}

// cutBody cuts what was read into a body of length bytes and what follows it, which
// goes in front of pending.
func cutBody(read []byte, length int, pending []byte) (body, rest []byte) {
	if length = max(length, 0); len(read) <= length {
		return read, pending
	}
	return read[:length], slices.Concat(read[length:], pending)
}

// continues is what a caller waits for that sends "Expect: 100-continue".
const continues = "HTTP/1.1 100 Continue\r\n\r\n"

// await waits for the first byte of the body, without memory for it: announcing a
// body costs nothing. A caller that waits for it is told to go on, if welcome.
func (in *intake) await(c *conn, welcome bool) refusal {
	spare := in.data
	in.data = nil
	in.buffers.put(spare)
	if in.continues {
		if !welcome {
			return tooLarge
		}
		if _, err := io.WriteString(c, continues); err != nil {
			return cutShort
		}
	}
	var first [1]byte
	switch _, err := io.ReadFull(c, first[:]); {
	case err == nil:
	case !welcome:
		return tooLarge
	default:
		return unread(err)
	}
	in.data = append(in.buffers.get(), first[0])
	return accepted
}

// unread says why a body was not read to its end.
func unread(err error) refusal {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return tooSlow
	}
	return cutShort
}

// growth is by how much the memory of a body grows that does not fit.
const growth = 4

// grow makes room for size bytes. It reports false if there are none.
func (in *intake) grow(size int) bool {
	if !in.holder.take(size, in.until) {
		return false
	}
	larger := append(make([]byte, 0, size), in.data...)
	in.drop()
	in.data, in.taken = larger, true
	return true
}

// drop gives the memory back.
func (in *intake) drop() {
	if in.taken {
		in.holder.put(in.data)
	} else {
		in.buffers.put(in.data)
	}
	in.data, in.taken = nil, false
}

// body makes what was received a Body, which has the memory from here on.
func (in *intake) body() *codec.Body {
	data := in.data
	in.data = nil
	return codec.NewBody(data, in.holder.give)
}

// errNoMemory ends a decompression for which there is no more memory.
var errNoMemory = errors.New("no memory")

// decompress replaces what was received by its content, if it is compressed. Where it
// fails, data is the beginning of that.
func (in *intake) decompress(encoding string) refusal {
	if encoding == "" {
		return accepted
	}
	working := codec.DecompressorBytes(encoding)
	plain := intake{buffers: in.buffers, holder: in.holder, limit: in.limit, until: in.until, data: in.buffers.get()}
	defer func() {
		in.drop()
		*in = plain
	}()
	if !in.holder.take(working, in.until) {
		return noMemory
	}
	defer in.holder.release(working)
	if plain.taken = plain.holder.take(cap(plain.data), plain.until); !plain.taken {
		return noMemory
	}
	var err error
	plain.data, err = codec.Decompress(plain.data, encoding, in.data, in.limit, func(content []byte) ([]byte, error) {
		if plain.data = content; !plain.grow(growth * cap(content)) {
			return nil, errNoMemory
		}
		return plain.data, nil
	})
	switch {
	case errors.Is(err, codec.ErrTooLarge):
		return tooLarge
	case errors.Is(err, errNoMemory):
		return noMemory
	case err != nil:
		return badEncoding
	}
	return accepted
}
