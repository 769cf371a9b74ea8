// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/admission-dispatcher/dispatcher/codec"
)

func TestAppendCompressed(t *testing.T) {
	for _, body := range []string{"", "x", smallPayloads()[0].text(), strings.Repeat("abc", 1<<20)} {
		for c := codec.Identity; c <= codec.Zstd; c++ {
			got := codec.AppendCompressed([]byte("head"), c, []byte(body))
			if !strings.HasPrefix(string(got), "head") {
				t.Fatalf("%q does not append", c)
			}
			got = got[len("head"):]
			if c != codec.Identity {
				var err error
				if got, err = codec.Decompress(nil, c.String(), got, len(body), nil); err != nil {
					t.Fatalf("%q: %v", c, err)
				}
			}
			if string(got) != body {
				t.Errorf("%q: %d bytes became %d others", c, len(body), len(got))
			}
		}
	}
}

// A second body has nothing of the first, which the pooled writer has seen.
func TestAppendCompressedForgets(t *testing.T) {
	for _, c := range []codec.Coding{codec.Gzip, codec.Zstd} {
		first := string(codec.AppendCompressed(nil, c, []byte("secret secret secret")))
		codec.AppendCompressed(nil, c, []byte(smallPayloads()[0].text()))
		if again := string(codec.AppendCompressed(nil, c, []byte("secret secret secret"))); again != first {
			t.Errorf("%v: got other bytes the second time", c)
		}
	}
}

// BenchmarkCompression is where the levels come from.
func BenchmarkCompression(b *testing.B) {
	for _, p := range payloads()[:4] {
		for _, level := range []int{gzip.BestSpeed, 3, 6, gzip.BestCompression} {
			b.Run(fmt.Sprintf("%s/gzip-%d", p.name, level), func(b *testing.B) {
				w, err := gzip.NewWriterLevel(io.Discard, level)
				if err != nil {
					b.Fatal(err)
				}
				measure(b, p.text(), func(body []byte) int {
					var n counter
					w.Reset(&n)
					_, _ = w.Write(body)
					_ = w.Close()
					return int(n)
				})
			})
		}
		for level := zstd.SpeedFastest; level <= zstd.SpeedBestCompression; level++ {
			b.Run(fmt.Sprintf("%s/zstd-%s", p.name, level), func(b *testing.B) {
				w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
				if err != nil {
					b.Fatal(err)
				}
				var out []byte
				measure(b, p.text(), func(body []byte) int {
					out = w.EncodeAll(body, out[:0])
					return len(out)
				})
			})
		}
		for _, c := range []codec.Coding{codec.Gzip, codec.Zstd} {
			b.Run(fmt.Sprintf("%s/ours-%v", p.name, c), func(b *testing.B) {
				var out []byte
				measure(b, p.text(), func(body []byte) int {
					out = codec.AppendCompressed(out[:0], c, body)
					return len(out)
				})
			})
		}
	}
}

// measure reports how long compress takes and how many times smaller body gets.
func measure(b *testing.B, body string, compress func([]byte) int) {
	data, size := []byte(body), 0
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		size = compress(data)
	}
	b.ReportMetric(float64(len(data))/float64(size), "ratio")
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
