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

// AppendCompressed appends body in the coding c to dst, at the levels that
// docs/decisions/0011-payload-forms.md measures.
func AppendCompressed(dst []byte, c Coding, body []byte) []byte {
	switch c {
	case Gzip:
		return appendGzip(dst, body)
	case Zstd:
		return appendZstd(dst, body)
	default:
		return append(dst, body...)
	}
}

// The fastest levels: the next ones make ordinary reviews 2 to 3 % smaller, and take
// a third to twice as long again.
const (
	gzipLevel = gzip.BestSpeed
	zstdLevel = zstd.SpeedFastest
)

// compressWindow is how far back a zstd writer looks, and thereby what a pooled
// one keeps, in bytes, and what a webhook needs to read it.
const compressWindow = 1 << 20

var (
	gzipWriters = sync.Pool{New: func() any { return newGzipWriter() }}
	zstdWriters = sync.Pool{New: func() any { return newZstdWriter() }}
)

func newGzipWriter() *gzip.Writer {
	w, err := gzip.NewWriterLevel(nil, gzipLevel)
	if err != nil {
		panic("codec: gzip level: " + err.Error()) // a constant
	}
	return w
}

// newZstdWriter returns a writer without goroutines.
func newZstdWriter() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstdLevel), zstd.WithWindowSize(compressWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("codec: zstd options: " + err.Error()) // constants
	}
	return w
}

func appendGzip(dst, body []byte) []byte {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	out := appender{dst}
	w.Reset(&out)
	_, _ = w.Write(body) // an appender does not fail
	_ = w.Close()
	w.Reset(nil) // not to keep dst alive in the pool
	return out.data
}

func appendZstd(dst, body []byte) []byte {
	w := zstdWriters.Get().(*zstd.Encoder)
	defer zstdWriters.Put(w)
	return w.EncodeAll(body, dst)
}

// appender appends what is written to it.
type appender struct{ data []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.data = append(a.data, p...)
	return len(p), nil
}

// What Decompress fails with besides defects of the data.
var (
	ErrTooLarge        = errors.New("decompressed body is too large")
	ErrUnknownEncoding = errors.New("unknown content encoding")
)

// DecompressorBytes returns how much memory Decompress needs beside the content, in
// bytes: the window, and what is around it.
func DecompressorBytes(encoding string) int {
	if encoding == "zstd" {
		return maxZstdWindow + 512<<10
	}
	return 64 << 10
}

// Decompress appends the content of body to dst. encoding is gzip or zstd, as in
// Content-Encoding; any other fails with ErrUnknownEncoding. Content of more than
// limit bytes fails with ErrTooLarge. grow returns its argument with more capacity,
// or an error, which ends it; nil: as append does. On an error the result is the
// content as far as it was read.
func Decompress(dst []byte, encoding string, body []byte, limit int, grow func([]byte) ([]byte, error)) ([]byte, error) {
	var pool *sync.Pool
	switch encoding {
	case "gzip":
		pool = &gzipReaders
	case "zstd":
		pool = &zstdReaders
	default:
		return dst, fmt.Errorf("%w %q", ErrUnknownEncoding, encoding)
	}
	if grow == nil {
		grow = func(dst []byte) ([]byte, error) { return slices.Grow(dst, 512), nil }
	}
	r := pool.Get().(resettable)
	defer pool.Put(r)
	defer func() { _ = r.Reset(empty{}) }() // not to keep body alive in the pool
	// Not a bytes.Buffer: zstd would decode all of that at once, without a limit.
	err := r.Reset(bytes.NewReader(body))
	if err == nil {
		dst, err = appendAll(dst, r, limit, grow)
	}
	if err == nil || errors.Is(err, ErrTooLarge) {
		return dst, err
	}
	return dst, fmt.Errorf("decompress %s: %w", encoding, err)
}

// appendAll appends at most limit bytes of r, and everything that r has.
func appendAll(dst []byte, r io.Reader, limit int, grow func([]byte) ([]byte, error)) ([]byte, error) {
	start := len(dst)
	for {
		if len(dst) == cap(dst) {
			larger, err := grow(dst)
			if err != nil {
				return dst, err
			}
			dst = larger
		}
		room := dst[len(dst):min(cap(dst), start+limit+1)]
		n, err := r.Read(room)
		dst = dst[:len(dst)+n]
		switch {
		case len(dst)-start > limit:
			return dst[:start+limit], fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
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
