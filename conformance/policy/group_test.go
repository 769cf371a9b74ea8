// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// The kinds of every group that the API server has Go types for are evaluated as such,
// also of those whose types are no part of client-go's scheme; custom resources are not
// (H5).
func TestGroupsOfTypedKinds(t *testing.T) {
	condition, err := celenv.NewCompiler().Compile("object.metadata == 'a'")
	if err != nil {
		t.Fatal(err)
	}
	fails := func(group string) bool {
		body := codec.NewBody(fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":%q,"version":"v1","kind":"Thing"},"resource":{"group":"","version":"v1","resource":"things"},"operation":"CREATE","object":{"metadata":{"name":"a"}}}}`, group), nil)
		defer body.Release()
		r := codec.AcquireReview()
		defer codec.ReleaseReview(r)
		if err := r.Decode(body); err != nil {
			t.Fatal(err)
		}
		_, _, err := condition.Evaluate(&celenv.Variables{Input: celenv.Input{Review: r, Object: &r.Object}}, celenv.Budget, time.Time{})
		return err != nil
	}
	groups := scheme.Scheme.PrioritizedVersionsAllGroups()
	for _, other := range []string{"apiextensions.k8s.io", "apiregistration.k8s.io"} {
		groups = append(groups, schema.GroupVersion{Group: other})
	}
	for _, of := range groups {
		never := slices.Contains([]string{"admission.k8s.io", "apidiscovery.k8s.io"}, of.Group) // nobody stores those
		if !fails(of.Group) && !never {
			t.Errorf("group %q is not typed", of.Group)
		}
	}
	if len(groups) < 20 {
		t.Errorf("there are only %d", len(groups))
	}
	for _, custom := range []string{"example.com", "gateway.networking.k8s.io", "snapshot.storage.k8s.io", "metrics.k8s.io"} {
		if fails(custom) {
			t.Errorf("group %q is typed", custom)
		}
	}
}
