// SPDX-License-Identifier: Apache-2.0

package codec

import (
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
