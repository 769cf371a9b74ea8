// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// AppendCompressed appends body in the coding c to dst.
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

var (
	gzipWriters = sync.Pool{New: func() any { return newGzipWriter() }}
	zstdWriters = sync.Pool{New: func() any { return newZstdWriter() }}
)

// appender appends what is written to it to *out.
type appender struct{ out *[]byte }

func (a appender) Write(p []byte) (int, error) {
	*a.out = append(*a.out, p...)
	return len(p), nil
}

func newGzipWriter() *gzip.Writer {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("codec: gzip level: " + err.Error()) // a constant
	}
	return w
}

func newZstdWriter() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("codec: zstd options: " + err.Error()) // constants
	}
	return w
}

func appendGzip(dst, body []byte) []byte {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(appender{&dst})
	_, _ = w.Write(body)
	_ = w.Close()
	w.Reset(nil)
	return dst
}

func appendZstd(dst, body []byte) []byte {
	w := zstdWriters.Get().(*zstd.Encoder)
	defer zstdWriters.Put(w)
	return w.EncodeAll(body, dst)
}
