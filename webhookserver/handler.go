// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"

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
