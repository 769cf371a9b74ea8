// SPDX-License-Identifier: Apache-2.0

// Package script is an HTTPS server of webhooks that answer by script: properly,
// or wrong in every way of the contract.
package script

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Script is how one webhook answers, every time.
type Script struct {
	// Form is what is odd about the answer; empty for a proper one.
	Form Form `json:"form,omitempty"`

	Allowed     bool              `json:"allowed"`
	Code        int32             `json:"code,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Message     string            `json:"message,omitempty"`
	RetryAfter  int32             `json:"retryAfter,omitempty"`
	Patch       json.RawMessage   `json:"patch,omitempty"` // operations
	Warnings    []string          `json:"warnings,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// TellsForm: an audit annotation says in which form the review came.
	TellsForm bool `json:"tellsForm,omitempty"`
}

// Failure is a plain way to give no usable answer.
var failure = Script{Form: Status500}

// RefusalText is the message of a stand-in for what the dispatcher refuses in
// words of its own.
const RefusalText = "the dispatcher refuses"

// rejection stands in for a refusal.
func rejection(code int32) Script { return Script{Code: code, Message: RefusalText} }

// Answer is the response part of an AdmissionReview as s gives it.
func (s *Script) answer(uid string) map[string]any {
	r := map[string]any{"uid": uid, "allowed": s.Allowed}
	if status := s.status(); len(status) > 0 {
		r["status"] = status
	}
	if s.Patch != nil {
		r["patch"], r["patchType"] = []byte(s.Patch), "JSONPatch"
	}
	if s.Warnings != nil {
		r["warnings"] = s.Warnings
	}
	if s.Annotations != nil {
		r["auditAnnotations"] = s.Annotations
	}
	s.exaggerate(r)
	return r
}

// exaggerate fills in more than the dispatcher passes on.
func (s *Script) exaggerate(r map[string]any) {
	switch s.Form {
	case ManyWarnings:
		all := make([]string, 1000)
		for i := range all {
			all[i] = fmt.Sprintf("%d %s", i, strings.Repeat("w", 300))
		}
		r["warnings"] = all
	case ManyAnnotations:
		all := map[string]string{"not a key": "x", "has/slash": "y", "dispatcher.dev.mutated": "z", "long": strings.Repeat("v", 2<<10)}
		for i := range 100 {
			all[fmt.Sprintf("key-%d", i)] = "v"
		}
		r["auditAnnotations"] = all
	}
}

func (s *Script) status() map[string]any {
	status := map[string]any{}
	if s.Code != 0 {
		status["code"] = s.Code
	}
	if s.Form == CodeBeyond {
		status["code"] = 651
	}
	if s.Reason != "" {
		status["reason"] = s.Reason
	}
	if s.Message != "" {
		status["message"] = s.Message
	}
	if s.RetryAfter != 0 {
		status["details"] = map[string]any{"retryAfterSeconds": s.RetryAfter}
	}
	return status
}
