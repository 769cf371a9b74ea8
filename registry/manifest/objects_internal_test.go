// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"reflect"
	"testing"
)

// No kind of object is lost between a manifest and the whole.
func TestObjectsOfAllManifests(t *testing.T) {
	var one, all Objects
	kinds := reflect.ValueOf(&one).Elem()
	for i := range kinds.NumField() {
		kinds.Field(i).Set(reflect.MakeSlice(kinds.Field(i).Type(), 1, 1))
	}
	all.add(&one)
	all.add(&one)
	for i := range kinds.NumField() {
		if n := reflect.ValueOf(all).Field(i).Len(); n != 2 {
			t.Errorf("of two %s there are %d", kinds.Type().Field(i).Name, n)
		}
	}
	if all.Len() != 2*kinds.NumField() {
		t.Errorf("%d of %d objects are counted", all.Len(), 2*kinds.NumField())
	}
}
