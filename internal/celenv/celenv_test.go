// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	c := NewCompiler()
	tests := []struct{ name, expression, want string }{
		{"plain", `request.operation == 'CREATE'`, ""},
		{"the cluster", `cluster.name == 'east' && cluster.labels['env'] == 'prod'`, ""},
		{"library functions of the API server", `object.spec.url.matches('a') && isURL('https://a') && quantity('1Mi').isInteger()`, ""},
		{"E8 does not parse", `object.`, "Syntax error"},
		{"E8 empty", ``, "compilation failed"},
		{"E8 unknown variable", `objekt.a`, "undeclared reference to 'objekt'"},
		{"E8 unknown field of request", `request.uid == ''`, "undefined field 'uid'"},
		{"E8 unknown field of cluster", `cluster.uid == ''`, "undefined field 'uid'"},
		{"E8 not a bool", `request.name`, "must evaluate to bool but got string"},
		{"E8 of unknown type", `object.spec.enabled`, "must evaluate to bool but got dyn"},
		{"E8 panics CEL's compiler", `[?object.spec.replicas] == [3]`, "compilation failed: it panics CEL's compiler"},
		{"E8 params", `params.a == 1`, "undeclared reference to 'params'"},
		{"J1 authorizer", `authorizer.path('/x').check('get').allowed()`, ""},
		{"J1 authorizer of the resource", `authorizer.requestResource.check('get').allowed()`, ""},
		{"E8 authorizer and a mistake", `authorizer.path('/x').check('get').allowed() && objekt.a`, "undeclared reference to 'objekt'"},
		{"E8 not a bool of the authorizer", `authorizer.path('/x').check('get')`, "must evaluate to bool but got kubernetes.authorization.Decision"},
		{"authorizer as a name of one's own", `[1].all(authorizer, authorizer > 0)`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			condition, err := c.Compile(tt.expression)
			if tt.want == "" {
				if err != nil || condition == nil || condition.Authorizes() != strings.HasPrefix(tt.name, "J1") {
					t.Fatalf("got %+v, %v, want no error", condition, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// H7 An expression of a policy that panics CEL's compiler is refused, and its Scope stays good.
func TestPanicsOfTheCompiler(t *testing.T) {
	s := scopeOf(t, "b=object.spec")
	for _, text := range []string{"[?object.spec]", "[?oldObject.a, ?object.b] == []", "{'a': [?variables.b]}.size() == 0", "{?'a': object.spec}"} {
		if x, err := s.Compile(text, AnythingElse); err == nil {
			t.Errorf("%s compiles: %v", text, x)
		}
		if err := s.Declare("a", text); err == nil {
			t.Errorf("%s can be declared", text)
		}
	}
	expression(t, s, "object.spec == null")
}

func TestCompileRemembers(t *testing.T) {
	c := NewCompiler()
	for _, expression := range []string{`request.name == 'a'`, `nonsense`} {
		first, firstErr := c.Compile(expression)
		second, secondErr := c.Compile(expression)
		if first != second || firstErr != secondErr { //nolint:errorlint // the very same error
			t.Errorf("%s was compiled twice", expression)
		}
	}
}

func TestCacheForgets(t *testing.T) {
	var c cache
	used := compiled{condition: &Condition{}}
	c.add(source{text: "used"}, used)
	for i := range 5 * maxYoung {
		c.add(source{text: fmt.Sprint(i)}, compiled{})
		if i%100 == 0 {
			if got, ok := c.find(source{text: "used"}); !ok || got != used {
				t.Fatalf("what is in use was forgotten after %d others", i)
			}
		}
		if held := len(c.young) + len(c.old); held > 2*maxYoung {
			t.Fatalf("%d expressions are held", held)
		}
	}
	if _, ok := c.find(source{text: "0"}); ok {
		t.Error("what is no longer in use was not forgotten")
	}
}

func BenchmarkNewCompiler(b *testing.B) {
	for b.Loop() {
		NewCompiler()
	}
}

func BenchmarkCompile(b *testing.B) {
	c := NewCompiler()
	for i := 0; b.Loop(); i++ {
		if _, err := c.Compile(fmt.Sprintf("object.metadata.labels.exists(k, k == 'x%d')", i)); err != nil {
			b.Fatal(err)
		}
	}
}
