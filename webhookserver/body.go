// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// acceptEncoding lists the content codings that are read, the best one first
// (RFC 7694).
const acceptEncoding = "zstd, gzip"

// maxWindow is the largest window that a zstd body may ask for (RFC 9659).
const maxWindow = 8 << 20

// body reads the request's body and undoes its content coding.
func (h *handler) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > h.options.MaxBytes {
		return nil, h.tooLarge()
	}
	body, err := h.readAll(w, r.Body, "reading the body")
	if err != nil {
		return nil, err
	}
	switch coding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ", ")); coding {
	case "", "identity":
		return body, nil
	case "gzip":
		return h.gunzip(w, body)
	case "zstd":
		return h.unzstd(body)
	default:
		return nil, refusal(http.StatusUnsupportedMediaType, "Content-Encoding %q is not read here: send gzip, zstd or none", coding)
	}
}

func (h *handler) gunzip(w http.ResponseWriter, body []byte) ([]byte, error) {
	const doing = "decompressing the body with gzip"
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, refusal(http.StatusBadRequest, "%s: %v", doing, err)
	}
	return h.readAll(w, z, doing)
}

// readAll reads to the end, or to the limit.
func (h *handler) readAll(w http.ResponseWriter, from io.ReadCloser, doing string) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, from, h.options.MaxBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, h.tooLarge()
	}
	if err != nil {
		return nil, refusal(http.StatusBadRequest, "%s: %v", doing, err)
	}
	return data, nil
}

func (h *handler) unzstd(body []byte) ([]byte, error) {
	plain, err := h.zstd.DecodeAll(body, nil)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || int64(len(plain)) > h.options.MaxBytes {
		return nil, h.tooLarge()
	}
	if err != nil {
		return nil, refusal(http.StatusBadRequest, "decompressing the body with zstd: %v", err)
	}
	return plain, nil
}

// newZstd returns a decoder for DecodeAll, which many requests may share: it
// keeps no goroutines. It takes a limit below the window for one of the window,
// which senders choose whatever the size of the content; so a small limit is
// checked once more after decompression.
func newZstd(maxBytes int64) *zstd.Decoder {
	d, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(max(maxBytes, maxWindow))), zstd.WithDecoderMaxWindow(maxWindow))
	return d // no error: both options are in their ranges
}

func (h *handler) tooLarge() error {
	return refusal(http.StatusRequestEntityTooLarge, "the body exceeds %d bytes, the limit also for what it decompresses to", h.options.MaxBytes)
}
