// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// H30 A group and version that nobody has asked for in a while gives its place to a new one:
// the longest ago first, and none that was asked for since.
func TestKindsForgetWhatNobodyAsksFor(t *testing.T) {
	k := &Kinds{wake: make(chan struct{}, 1), documents: map[schema.GroupVersion]*openAPI{}}
	ask := func(group string) error {
		_, err := k.document(schema.GroupVersion{Group: group, Version: "v1"})
		return err
	}
	for i := range maxGroupVersions {
		if err := ask(fmt.Sprintf("g%d.example.com", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("new.example.com"); !errors.Is(err, errManyKinds) {
		t.Errorf("one more at once: %v", err)
	}
	long := time.Now().Add(-2 * unaskedFor)
	for of, d := range k.documents {
		if of.Group == "g1.example.com" || of.Group == "g2.example.com" || of.Group == "g3.example.com" {
			d.asked = long
		}
	}
	k.documents[schema.GroupVersion{Group: "g2.example.com", Version: "v1"}].asked = long.Add(-time.Second)
	for _, step := range []struct {
		group string
		err   error
	}{{"g1.example.com", nil}, {"new.example.com", nil}, {"newer.example.com", nil}, {"newest.example.com", errManyKinds}} {
		if err := ask(step.group); !errors.Is(err, step.err) {
			t.Errorf("%s: %v", step.group, err)
		}
	}
	for i := range maxGroupVersions {
		of := schema.GroupVersion{Group: fmt.Sprintf("g%d.example.com", i), Version: "v1"}
		if forgotten := k.documents[of] == nil; forgotten != (i == 2 || i == 3) {
			t.Errorf("%v is forgotten: %v", of, forgotten)
		}
	}
	if len(k.documents) != maxGroupVersions {
		t.Errorf("%d are kept", len(k.documents))
	}
}

// H31 What is read of documents in one interval counts for all looks in it.
func TestAllowanceOfAnInterval(t *testing.T) {
	var a allowance
	begin := time.Now()
	for _, step := range []struct {
		after time.Duration
		left  int64
	}{{0, maxDocuments}, {kindsInterval - 1, maxDocuments / 2}, {kindsInterval, maxDocuments}, {2*kindsInterval - 1, maxDocuments / 2}, {2 * kindsInterval, maxDocuments}} {
		left := a.at(begin.Add(step.after))
		if left.left != step.left {
			t.Errorf("after %v %d bytes may be read, want %d", step.after, left.left, step.left)
		}
		left.left -= maxDocuments / 2
	}
}
