// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// What Decompress fails with besides defects of the data.
var (
	ErrTooLarge        = errors.New("decompressed body is too large")
	ErrUnknownEncoding = errors.New("unknown content encoding")
)

// Decompress appends the content of body to dst. encoding is gzip or zstd, as in
// Content-Encoding; any other fails with ErrUnknownEncoding. Content of more than
// limit bytes fails with ErrTooLarge, having used little more memory than that.
// On an error the result is nil.
func Decompress(dst []byte, encoding string, body []byte, limit int) ([]byte, error) {
	var pool *sync.Pool
	switch encoding {
	case "gzip":
		pool = &gzipReaders
	case "zstd":
		pool = &zstdReaders
	default:
		return nil, fmt.Errorf("%w %q", ErrUnknownEncoding, encoding)
	}
	r := pool.Get().(resettable)
	defer pool.Put(r)
	defer func() { _ = r.Reset(empty{}) }() // not to keep body alive in the pool
	// Not a bytes.Buffer: zstd would decode all of that at once, without a limit.
	err := r.Reset(bytes.NewReader(body))
	if err == nil {
		dst, err = appendAll(dst, r, limit)
	}
	if err == nil || errors.Is(err, ErrTooLarge) {
		return dst, err
	}
	return nil, fmt.Errorf("decompress %s: %w", encoding, err)
}

// appendAll appends at most limit bytes of r, and everything that r has.
func appendAll(dst []byte, r io.Reader, limit int) ([]byte, error) {
	start := len(dst)
	for {
		dst = slices.Grow(dst, 512)
		room := dst[len(dst):min(cap(dst), start+limit+1)]
		n, err := r.Read(room)
		dst = dst[:len(dst)+n]
		switch {
		case len(dst)-start > limit:
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, err
		}
	}
}

// resettable is a pooled decompressor.
type resettable interface {
	io.Reader
	Reset(io.Reader) error
}

// empty is a reader at its end.
type empty struct{}

func (empty) Read([]byte) (int, error) { return 0, io.EOF }

// maxZstdWindow is the largest window that a zstd frame may ask for, in bytes:
// what RFC 8878 recommends decoders to support.
const maxZstdWindow = 8 << 20

var (
	gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}
	zstdReaders = sync.Pool{New: func() any { return newZstdReader() }}
)

// newZstdReader returns a decoder without goroutines.
func newZstdReader() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		panic("codec: zstd options: " + err.Error()) // constant options
	}
	return d
}
