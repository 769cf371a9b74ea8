// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhooktesting "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/warning"
)

// Phase is the half of the chain that decided.
type Phase string

// The phases.
const (
	Mutating   Phase = "mutate"
	Validating Phase = "validate"
)

// Result is what came of an admission: what the user sees, and what the audit log
// says.
type Result struct {
	Allowed     bool
	Phase       Phase         // where it ended
	Status      metav1.Status // of a denial
	Object      any           // decoded JSON; nil where there is none
	Warnings    []string      // in order of arrival
	Annotations map[string]string
}

// recorder keeps warnings.
type recorder struct {
	mu       sync.Mutex
	warnings []string
}

func (r *recorder) in(ctx context.Context) context.Context {
	return warning.WithWarningRecorder(ctx, r)
}

// AddWarning implements warning.Recorder.
func (r *recorder) AddWarning(_, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, text)
}

func (r *recorder) result(phase Phase, err error, attr *webhooktesting.FakeAttributes) Result {
	out := Result{
		Allowed:     err == nil,
		Phase:       phase,
		Warnings:    r.warnings,
		Annotations: attr.GetAnnotations(auditinternal.LevelRequest),
	}
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &status):
		out.Status = status.ErrStatus
	case err != nil: // kube-apiserver turns any other error into this one
		out.Status = apierrors.NewInternalError(err).ErrStatus
	}
	if obj := attr.GetObject(); obj != nil {
		out.Object = decoded(obj)
	}
	return out
}

// decoded returns the JSON form of an object that came out of a JSON decoder.
func decoded(obj any) any {
	text, err := json.Marshal(obj)
	if err != nil {
		return err.Error()
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return err.Error()
	}
	return tree
}
