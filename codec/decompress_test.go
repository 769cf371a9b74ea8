// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/admission-dispatcher/dispatcher/codec"
)

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, content []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(content, nil)
}

func TestDecompress(t *testing.T) {
	encoders := map[string]func(testing.TB, []byte) []byte{"gzip": gzipped, "zstd": zstandard}
	for encoding, encode := range encoders {
		content := []byte(strings.Repeat(plainReview().json(), 100))
		body := encode(t, content)
		t.Run("A10 "+encoding, func(t *testing.T) {
			for range 3 {
				got, err := codec.Decompress([]byte("prefix"), encoding, body, len(content), nil)
				if err != nil || string(got) != "prefix"+string(content) {
					t.Fatalf("%v, %d bytes", err, len(got))
				}
			}
		})
		t.Run("A10 "+encoding+" above the limit", func(t *testing.T) {
			if got, err := codec.Decompress(nil, encoding, body, len(content)-1, nil); !errors.Is(err, codec.ErrTooLarge) || string(got) != string(content[:len(content)-1]) {
				t.Errorf("got %v, %d bytes", err, len(got))
			}
		})
		t.Run("A10 "+encoding+" above the limit, in words", func(t *testing.T) {
			if _, err := codec.Decompress(nil, encoding, body, 10, nil); err == nil || err.Error() != "decompressed body is too large: more than 10 bytes" {
				t.Errorf("got %v", err)
			}
		})
		t.Run("A10 "+encoding+" truncated", func(t *testing.T) {
			if got, err := codec.Decompress(nil, encoding, body[:len(body)-5], len(content), nil); err == nil || !bytes.HasPrefix(content, got) {
				t.Errorf("got %v, %d bytes", err, len(got))
			}
		})
		t.Run("A10 "+encoding+" with trailing bytes", func(t *testing.T) {
			if _, err := codec.Decompress(nil, encoding, append(bytes.Clone(body), "xxxx"...), len(content), nil); err == nil {
				t.Error("accepted")
			}
		})
		t.Run("A10 not "+encoding, func(t *testing.T) {
			if _, err := codec.Decompress(nil, encoding, content, len(content), nil); err == nil {
				t.Error("accepted")
			}
		})
		t.Run("A21 "+encoding+" bomb", func(t *testing.T) {
			const limit = 1 << 20
			bomb := encode(t, make([]byte, 200<<20))
			before := allocated()
			if _, err := codec.Decompress(nil, encoding, bomb, limit, nil); !errors.Is(err, codec.ErrTooLarge) {
				t.Errorf("got %v", err)
			}
			if got := allocated() - before; got > 32<<20 {
				t.Errorf("%d bytes were allocated", got)
			}
		})
	}
	t.Run("A21 zstd window", func(t *testing.T) {
		content := make([]byte, 20<<20)
		for window, accepted := range map[int]bool{8 << 20: true, 16 << 20: false} {
			var b bytes.Buffer
			w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			got, err := codec.Decompress(nil, "zstd", b.Bytes(), len(content), nil)
			if (err == nil) != accepted || accepted && len(got) != len(content) {
				t.Errorf("%d bytes: %v, %d bytes of content", window, err, len(got))
			}
		}
		if n := codec.DecompressorBytes("zstd"); n <= 8<<20 {
			t.Errorf("%d bytes are counted for a window of 8 MiB", n)
		}
	})
	t.Run("A21 zstd in one segment", func(t *testing.T) {
		content := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
		if got, err := codec.Decompress(nil, "zstd", zstandard(t, content), len(content), nil); err != nil || len(got) != len(content) {
			t.Errorf("a frame of %d bytes without a window: %v, %d bytes", len(content), err, len(got))
		}
	})
	t.Run("A10 other", func(t *testing.T) {
		for _, encoding := range []string{"", "identity", "br", "deflate", "gzip, gzip"} {
			if _, err := codec.Decompress(nil, encoding, nil, 1, nil); !errors.Is(err, codec.ErrUnknownEncoding) {
				t.Errorf("%q: got %v", encoding, err)
			}
		}
	})
}
