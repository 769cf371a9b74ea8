// SPDX-License-Identifier: Apache-2.0

package exempt_test

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// reviewOf is a review of an operation on a resource: "group/version/resource" or
// "group/version/resource/subresource".
func reviewOf(operation codec.Operation, group, version, resource, sub, namespace string) *codec.Review {
	r := &codec.Review{
		Operation:   operation,
		Resource:    resourceOf(group, version, resource),
		SubResource: []byte(sub),
		Namespace:   []byte(namespace),
		Name:        []byte("it"),
	}
	r.RequestResource, r.RequestSubResource = r.Resource, r.SubResource
	return r
}

func resourceOf(group, version, resource string) codec.GroupVersionResource {
	return codec.GroupVersionResource{Group: []byte(group), Version: []byte(version), Resource: []byte(resource)}
}

// objectOf is an object as a review has it.
func objectOf(t testing.TB, json string) codec.Object {
	t.Helper()
	var o codec.Object
	if err := codec.ScanObject(&o, []byte(json)); err != nil {
		t.Fatal(err)
	}
	return o
}
