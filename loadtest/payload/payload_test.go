// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The payloads have the sizes that they are called after, the same in every run,
// and are what kube-apiserver could have written.
func TestReviews(t *testing.T) {
	for _, test := range []struct {
		make func() Review
		size int
	}{{PodCreate, 6 << 10}, {DeploymentUpdate, 18 << 10}, {ConfigMapCreate, 1 << 20}, {CRDCreate, 1 << 20}, {LargestUpdate, 6 << 20}} {
		r, again := test.make(), test.make()
		if !bytes.Equal(r.Body, again.Body) {
			t.Errorf("%s differs from run to run", r.Name)
		}
		if size := len(r.Body); size < test.size*8/10 || size > test.size*12/10 {
			t.Errorf("%s has %d bytes, want about %d", r.Name, size, test.size)
		}
		decoder := json.NewDecoder(bytes.NewReader(r.Body))
		decoder.DisallowUnknownFields()
		var typed admissionv1.AdmissionReview
		if err := decoder.Decode(&typed); err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		if typed.Request.UID != types.UID(r.UID()) {
			t.Errorf("the uid is %s, want %s", typed.Request.UID, r.UID())
		}
	}
}

func TestNumber(t *testing.T) {
	r := PodCreate()
	c := r.Clone()
	c.Number(1234567)
	if got, want := c.UID(), "6d1f0f0c-2a64-4a39-9a53-000001234567"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r.UID() != uid {
		t.Errorf("the clone shares its uid: %s", r.UID())
	}
	c.Number(8)
	if got, want := c.UID(), "6d1f0f0c-2a64-4a39-9a53-000000000008"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
