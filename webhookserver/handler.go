// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/klauspost/compress/zstd"
	admissionv1 "k8s.io/api/admission/v1"
)

// Func decides one admission. A v1beta1 review arrives as the same v1 request.
//
// It must not change what it did not allocate outside of the request, since many
// run at once, and it may be called again for the same UID: callers retry. The
// context ends with the caller's ?timeout= and when the caller leaves; work that
// goes on longer is wasted. The UID of the response is filled in by the handler;
// the response itself is not changed and may be shared.
type Func func(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// Options are the settings of a handler. The zero value is ready to use.
type Options struct {
	// MaxBytes limits a request's body, and also what it decompresses to.
	// Zero means 8 MiB, which is well above what an API server can send: an
	// object and its predecessor of at most 3 MiB each.
	MaxBytes int64

	// NativeObjects says that the Func reads objects only with Decode and Object
	// (or with another decoder that knows both forms), so that objects of
	// built-in kinds may arrive as native protobuf. Without it Raw of every
	// object in a request is JSON.
	NativeObjects bool

	// Logger is told of panics. Nil means slog.Default().
	Logger *slog.Logger
}

const defaultMaxBytes = 8 << 20

// handler is frozen once New has returned.
type handler struct {
	review     Func
	options    Options
	acceptPost string
	zstd       *zstd.Decoder
}

// New returns a handler that asks review about every AdmissionReview posted to
// it. It starts no goroutines and needs no closing.
func New(review Func, options Options) http.Handler {
	if options.MaxBytes <= 0 {
		options.MaxBytes = defaultMaxBytes
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	acceptPost := mediaJSON + ", " + mediaProtobuf
	if options.NativeObjects {
		acceptPost += ";objects=native"
	}
	return &handler{review: review, options: options, acceptPost: acceptPost, zstd: newZstd(options.MaxBytes)}
}

// ServeHTTP answers one review, or says why it cannot.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Accept-Post", h.acceptPost)
	w.Header().Set("Accept-Encoding", acceptEncoding)
	contentType, answer, err := h.answer(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(answer) // a caller that has left needs no answer
}

// answer does all that can fail, so that nothing is written before it is known
// what. A panic anywhere on the way is a refusal too.
func (h *handler) answer(w http.ResponseWriter, r *http.Request) (contentType string, answer []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			h.options.Logger.ErrorContext(r.Context(), "the webhook panicked", "panic", p, "stack", string(debug.Stack()))
			err = refusal(http.StatusInternalServerError, "the webhook panicked")
		}
	}()
	form, err := formOf(r)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel, err := contextOf(r)
	if err != nil {
		return "", nil, err
	}
	defer cancel()
	review, err := h.read(w, r, form)
	if err != nil {
		return "", nil, err
	}
	response := h.review(ctx, review.Request)
	if response == nil {
		return "", nil, refusal(http.StatusInternalServerError, "the webhook gave no answer")
	}
	answer, err = form.encode(review, response)
	return form.mediaType, answer, err
}

// read returns the review in the request's body, if the Func can read it.
func (h *handler) read(w http.ResponseWriter, r *http.Request, form form) (*admissionv1.AdmissionReview, error) {
	body, err := h.body(w, r)
	if err != nil {
		return nil, err
	}
	review, err := form.decode(body)
	if err != nil {
		return nil, err
	}
	return review, h.readable(review.Request)
}

// readable refuses native objects for a Func that takes every Raw for JSON.
func (h *handler) readable(req *admissionv1.AdmissionRequest) error {
	if h.options.NativeObjects {
		return nil
	}
	for _, raw := range [][]byte{req.Object.Raw, req.OldObject.Raw, req.Options.Raw} {
		if isNative(raw) {
			return refusal(http.StatusUnsupportedMediaType, "objects in native protobuf are not read here: send them as JSON")
		}
	}
	return nil
}

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

// refused says with which status and text a request is refused.
type refused struct {
	status int
	text   string
}

func (r *refused) Error() string { return r.text }

func refusal(status int, format string, args ...any) error {
	return &refused{status: status, text: fmt.Sprintf(format, args...)}
}

// refuse answers with the status and the text of err.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if r := (*refused)(nil); errors.As(err, &r) {
		status = r.status
	}
	if status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	http.Error(w, err.Error(), status)
}
