// SPDX-License-Identifier: Apache-2.0

package quantity_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admission-dispatcher/dispatcher/internal/quantity"
)

// tree is a type that is a part of itself, with a quantity in a struct that it embeds.
type tree struct {
	inner

	Left  *tree            `json:"left"`
	Named map[string]*tree `json:"named"`
}

type inner struct {
	Size resource.Quantity `json:"size"`
	Bare resource.QuantityValue
}

// K12 A quantity that takes long to decode is found wherever there is one, and nothing else
// is taken for one.
func TestK12QuantitiesAreDecodable(t *testing.T) {
	pod, hidden := reflect.TypeFor[corev1.Pod](), reflect.TypeFor[tree]()
	for _, row := range []struct {
		into reflect.Type
		text string // %s is the quantity
		is   bool   // one
	}{
		{pod, `{"spec":{"containers":[{"resources":{"limits":{"cpu":%s}}}]}}`, true},
		{pod, `{"spec":{"containers":[{},{"resources":{"requests":{"cpu":"1","a/b":%s}}}]}}`, true},
		{pod, `{"spec":{"initContainers":[{"resources":{"limits":{"cpu":%s},"limits":{}}}]}}`, true},
		{pod, `{"spec":{"\u0063ontainers":[{"resources":{"limits":{"cpu": %s }}}]}}`, true},
		{pod, `{"spec":{"ephemeralContainers":[{"resources":{"limits":{"cpu":%s}}}]}}`, true},
		{pod, `{"spec":{"overhead":{"cpu":%s}}}`, true},
		{pod, `{"spec":{"volumes":[{"emptyDir":{"sizeLimit":%s}}]}}`, true},
		{pod, `{"spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":%s}}}}}}]}}`, true},
		{pod, `{"spec":{"containers":[{"env":[{"name":"A","value":%s}]}]}}`, false},
		{pod, `{"metadata":{"labels":{"commit":%s}}}`, false},
		{pod, `{"spec":{"unknown":{"cpu":%s}}}`, false},
		{pod, `{"spec":{"overhead":[{"cpu":%s}]}}`, false},
		{pod, `{"other":[[[%s],{}]],"spec":{}}`, false},
		{pod, `{"other":[[[%s],{}]],"spec":{"overhead":{"cpu":"1e-1000"}}}`, true},
		{hidden, `{"left":{"named":{"a":{"left":{"size":%s}}}}}`, true},
		{hidden, `{"left":{"named":{"a":{"left":{"Bare":%s}}}}}`, true},
		{hidden, `{"left":{"named":{"size":%s}}}`, false},
		{reflect.TypeFor[[]string](), `[%s]`, false},
	} {
		for number, slow := range map[string]bool{
			`"1"`: false, `"1e-100"`: false, `"1e-101"`: true, `1e-1000000000`: true, `"-1.5E-1000000000"`: true, `1e1000000000`: false, `"1e1000000000"`: false,
			`"1e-99999999999999999999"`: false, `"` + strings.Repeat("9", 256) + `"`: false, `"` + strings.Repeat("9", 257) + `"`: true, `"0.` + strings.Repeat("0", 1_000_000) + `1"`: true,
			`" 1e-1000"`: true,
		} {
			text := strings.ReplaceAll(row.text, "%s", number)
			want := !(slow && row.is) && !(row.is && strings.Contains(row.text, "1e-1000"))
			if got := quantity.AreDecodable([]byte(text), row.into); got != want {
				t.Errorf("%.120s into %s: %t", text, row.into, got)
			}
		}
	}
	for _, text := range []string{"", "1e-1000", `"1e-1000`, `{"spec":{"overhead":{"cpu":`, `{"spec":1e-1000,`, strings.Repeat("[", 1_000_000) + "1e-1000", `{"left":` + strings.Repeat(`{"left":`, 1_000_000) + "1e-1000"} {
		if !quantity.AreDecodable([]byte(text), hidden) {
			t.Errorf("%.60s is no object, and is not decoded", text)
		}
	}
}
