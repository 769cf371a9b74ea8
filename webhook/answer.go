// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"fmt"
	"mime"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// checkHTTP refuses every answer but a plain 200 with JSON (answers.md C10, C11,
// C27), or with protobuf where the review was. What a webhook says beside a 200 is
// not looked at: it is no answer.
func checkHTTP(resp *fasthttp.Response, host string, form codec.Form) error {
	status := resp.StatusCode()
	switch {
	case status > fasthttp.StatusOK && status <= fasthttp.StatusPartialContent && status != fasthttp.StatusNoContent:
		return &CallError{Cause: BadAnswer, Err: fmt.Errorf("%s answered with HTTP status %d instead of 200", host, status)}
	case status != fasthttp.StatusOK:
		return &CallError{Cause: HTTPStatus, Err: fmt.Errorf("%s answered with HTTP status %d", host, status)}
	case len(resp.Header.ContentEncoding()) > 0:
		return &CallError{Cause: BadAnswer, Err: fmt.Errorf("%s answered with a Content-Encoding that was not asked for", host)}
	case !isJSON(resp.Header.ContentType()) && (form.Encoding == codec.JSON || !isProtobuf(resp.Header.ContentType())):
		return &CallError{Cause: BadAnswer, Err: fmt.Errorf("%s answered with a Content-Type other than application/json", host)}
	case len(resp.Body()) == 0:
		return &CallError{Cause: HTTPStatus, Err: fmt.Errorf("%s answered with an empty body", host)}
	}
	return nil
}

func isProtobuf(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte(";"))
	return string(bytes.TrimSpace(kind)) == codec.MediaTypeProtobuf
}

var plainJSON = []byte("application/json")

// isJSON takes an absent type for JSON, and text/plain, which is what servers say
// that leave the type to be guessed; whether it is JSON shows when it is read.
func isJSON(contentType []byte) bool {
	if len(contentType) == 0 || bytes.Equal(contentType, plainJSON) {
		return true
	}
	kind, _, err := mime.ParseMediaType(string(contentType))
	return err == nil && (kind == "application/json" || kind == "text/plain" || strings.HasSuffix(kind, "+json"))
}
