// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// H5 Of a built-in kind, what is no map cannot be compared with a map, and so on: an
// error, which the failure policy decides about. Of a custom resource it is false.
func TestTypedValues(t *testing.T) {
	c := NewCompiler()
	const text = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"GROUP","version":"v1","kind":"Thing"},"resource":{"group":"","version":"v1","resource":"things"},"operation":"CREATE",
		"object":{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"list":[1,2],"parts":[{"names":["a"]}],"nested":{"list":[1,2]}}},
		"oldObject":{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"list":[1,3]}}}}`
	for expression, want := range map[string]struct{ custom, builtIn string }{
		"object.metadata.labels == 'a'":                                            {"false", "no such overload"},
		"!(object.metadata.labels == 'a')":                                         {"true", "no such overload"},
		"object.metadata.labels != 'a'":                                            {"true", "true"},
		"'a' == object.metadata.labels":                                            {"false", "false"},
		"object.spec.list == 1":                                                    {"false", "no such overload"},
		"object == 1":                                                              {"false", "no such overload"},
		"object.metadata.labels == null":                                           {"false", "false"},
		"object.metadata.labels == {'app': 'web'}":                                 {"true", "true"},
		"object.metadata.labels == {'app': 'api'}":                                 {"false", "false"},
		"object.metadata.labels == {'tier': 'web'}":                                {"false", "false"},
		"object.metadata.labels == {'app': 'web', 'tier': 'a'}":                    {"false", "false"},
		"object.metadata == {'name': 'api', 'labels': 'a'}":                        {"false", "no such overload"},
		"object.spec.list == [1, 2, 3]":                                            {"false", "false"},
		"object.metadata.labels == {}":                                             {"false", "false"},
		"object.metadata.labels == oldObject.metadata.labels":                      {"true", "true"},
		"object.spec == oldObject.spec":                                            {"false", "false"},
		"object.spec.list == [1, 2]":                                               {"true", "true"},
		"object.spec.list == [1]":                                                  {"false", "false"},
		"object.spec.list == oldObject.spec.list":                                  {"false", "false"},
		"object.spec.parts == ['a']":                                               {"false", "false"},
		"object.spec.nested == {'list': 'a'}":                                      {"false", "no such overload"},
		"object.spec.parts[0] == {'names': 1}":                                     {"false", "no such overload"},
		"object.spec.nested == object.metadata.labels":                             {"false", "false"},
		"object.spec.nested == {'list': dyn([1, 3])}":                              {"false", "false"},
		"1 in object.metadata.labels":                                              {"false", "unsupported map key type"},
		"'app' in object.metadata.labels":                                          {"true", "true"},
		"'tier' in object.metadata.labels":                                         {"false", "false"},
		"object.metadata.labels[dyn(1)] == 'web'":                                  {"no such key", "unsupported map key type"},
		"object.metadata.labels['tier'] == 'web'":                                  {"no such key", "no such key"},
		"object.spec.list[dyn(1.0)] == 2":                                          {"true", "unsupported index type"},
		"object.spec.list[1u] == 2":                                                {"true", "unsupported index type"},
		"object.spec.list[1] == 2":                                                 {"true", "true"},
		"object.metadata.labels in ['a']":                                          {"false", "false"},
		"object.spec.list.map(x, x * 2) == [2, 4]":                                 {"true", "true"},
		"object.spec.list + [3] == [1, 2, 3] && 'a' in object.spec.parts[0].names": {"true", "true"},
		"object.spec.parts.all(p, p.names == 'a')":                                 {"false", "no such overload"},
	} {
		for group, want := range map[string]string{"": want.builtIn, "apps": want.builtIn, "example.com": want.custom, "gateway.networking.k8s.io": want.custom} {
			holds, err := evaluate(t, c, variablesOf(decode(t, strings.Replace(text, "GROUP", group, 1))), expression)
			switch {
			case err != nil && strings.Contains(err.Error(), want):
			case err == nil && (want == "true" && holds || want == "false" && !holds):
			default:
				t.Errorf("of group %q, %s is %v, %v; want %s", group, expression, holds, err, want)
			}
		}
	}
	labels := newTypedMap([]member{{key: "app", value: types.String("web")}})
	for key, want := range map[ref.Val]string{types.Int(1): "unsupported map key type: types.Int", types.String("tier"): "no such key: tier", types.String("app"): "web"} {
		if got := fmt.Sprint(labels.Get(key)); got != want {
			t.Errorf("%v is %s, want %s", key, got, want)
		}
	}
}
