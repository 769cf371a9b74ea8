// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"errors"
	"fmt"
	"net/http"
)

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
