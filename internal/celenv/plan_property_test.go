// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// byCEL returns the scope and the expression without plans.
func byCEL(s *Scope, x *Expression) (*Scope, *Expression) {
	without := func(x *Expression) *Expression {
		plain := *x
		plain.planned = planned{}
		return &plain
	}
	alone := *s
	alone.variables = nil
	for _, v := range s.variables {
		alone.variables = append(alone.variables, namedExpression{v.name, without(v.Expression)})
	}
	return &alone, without(x)
}

// came is all that an expression comes to: its value or error, and what is left of the budget.
func came(v *Variables, s *Scope, x *Expression, given Given) (text string) {
	v.Once(new(int), s, given, time.Time{}, func(e *Evaluation) (any, bool) {
		e.Pass(PolicyBudget)
		value, err := e.Evaluate(x)
		if err != nil {
			text = err.Error()
		} else {
			text = value.Type() + " " + value.JSON()
		}
		text = fmt.Sprintf("%s, left %d", text, e.Left())
		return nil, false
	})
	return text
}

// plansAgree fails if the expression comes to something else than CEL says by itself. It
// reports whether its plan knew.
func plansAgree(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, v *Variables, s *Scope, x *Expression, given Given,
) (knew bool) {
	t.Helper()
	alone, plain := byCEL(s, x)
	got, want := came(v, s, x, given), ""
	for range 50 { // in which a loop over a map has a few orders
		if want = came(v, alone, plain, given); got == want {
			break
		}
	}
	if got != want {
		t.Fatalf("%s\nis  %s\nCEL %s\nobject %s", x.text, got, want, v.Object.Raw)
	}
	v.Once(new(int), s, given, time.Time{}, func(e *Evaluation) (any, bool) {
		e.Pass(PolicyBudget)
		_, _, knew = e.follow(x.planned)
		return nil, false
	})
	return knew
}

// Of random expressions of policies and random objects, of built-in kinds and of others,
// the value, the error and the cost are those of CEL by itself.
func TestPlansAgreeWithCEL(t *testing.T) {
	compiler, asked, knew, unplanned := NewCompiler(), 0, 0, map[string]int{}
	scope := func() *Scope {
		s := compiler.NewScope(Declarations{Variables: true, Params: true})
		for _, v := range [][2]string{
			{"all", "object.spec.containers + object.spec.?initContainers.orValue([])"}, {"labels", "object.metadata.?labels.orValue({})"},
			{"n", "size(object.spec.containers)"}, {"team", "object.metadata.labels.team"}, {"maybe", "object.spec.?text"},
		} {
			if err := s.Declare(v[0], v[1]); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}()
	rapid.Check(t, func(t *rapid.T) {
		d := policyDraw{draw: draw{t}}
		review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","name":"web",` +
			`"kind":{"group":` + d.one(`""`, `"example.com"`) + `,"version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},` +
			`"userInfo":{"username":` + d.json() + `,"groups":["dev","ops"]},"object":` + d.pod() + `,"oldObject":` + d.one("null", d.pod()) + `}}`
		v := variablesOf(reviewOf(t, review))
		given := Given{Params: NewParams([]byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"team":"web","n":3}}`))}
		for range 20 {
			d.locals = nil
			text := d.bool(3)
			if d.percent(20) {
				text = d.one(d.list(3), d.text(3), d.number(2))
			}
			x, err := scope.Compile(text, AnythingElse)
			if err != nil {
				continue // types that do not agree
			}
			if asked++; x.planned.plan == nil {
				unplanned[text]++
				continue
			}
			if plansAgree(t, v, scope, x, given) {
				knew++
			}
		}
	})
	t.Logf("of %d, %d have no plan, and %d plans knew", asked, len(unplanned), knew)
	if knew < asked/3 {
		t.Errorf("of %d, %d have no plan, and %d plans knew: %v", asked, len(unplanned), knew, unplanned)
	}
}

// policyDraw draws expressions of policies.
type policyDraw struct {
	draw

	locals []string // of the loops around
}

func (d *policyDraw) bool(depth int) string {
	if depth <= 0 {
		return d.one("true", "false", d.maybe()+".orValue(false)", d.maybe()+".hasValue()", "has("+d.path()+".name)", d.text(0)+d.one(" == ", " != ")+d.text(0))
	}
	deeper := depth - 1
	switch rapid.IntRange(0, 17).Draw(d.T, "bool") {
	case 0:
		return "!(" + d.bool(deeper) + ")"
	case 1, 2:
		return "(" + d.bool(deeper) + d.one(" && ", " || ") + d.bool(deeper) + ")"
	case 3:
		return "(" + d.bool(deeper) + " ? " + d.bool(deeper) + " : " + d.bool(deeper) + ")"
	case 4:
		return d.text(deeper) + d.one(" == ", " != ", " < ", " <= ", " > ", " >= ") + d.text(deeper)
	case 5:
		return d.number(deeper) + d.one(" == ", " != ", " < ", " <= ", " > ", " >= ") + d.number(deeper)
	case 6:
		return d.any(deeper) + d.one(" == ", " != ") + d.any(deeper)
	case 7:
		return d.any(deeper) + " in " + d.one(d.list(deeper), d.collection(), d.any(deeper), "['a', 'web']", "[1, 2, 80]", "[]", "{}")
	case 8:
		return d.text(deeper) + d.one(".startsWith(", ".endsWith(", ".contains(") + d.text(deeper) + ")"
	case 9:
		return d.text(deeper) + ".matches(" + quote(d.one("^a", "web(-[0-9]+)?$", "", ".")) + ")"
	case 10:
		return "has(" + d.path() + d.one(".name", ".labels", ".privileged", ".none", ".spec") + ")"
	case 11:
		return "has(" + d.maybe() + ".name)"
	case 12, 13, 14:
		over, name := d.one(d.list(deeper), d.list(deeper), d.collection(), d.any(0)), d.local()
		defer d.end()
		return over + d.one(".all(", ".exists(", ".exists_one(") + name + ", " + d.bool(deeper) + ")"
	}
	return d.bool(0)
}

// local begins a loop with a variable, whose name may be that of another variable.
func (d *policyDraw) local() string {
	d.locals = append(d.locals, d.one("c", "x", "object"))
	return d.locals[len(d.locals)-1]
}

func (d *policyDraw) end() { d.locals = d.locals[:len(d.locals)-1] }

// path draws what is selected without or with success.
func (d *policyDraw) path() string {
	roots := []string{"object", "oldObject", "object.spec", "object['metadata']", "params.data", "request", "request.userInfo", "variables", "object.spec.containers[0]"}
	if n := len(d.locals); n > 0 && d.percent(80) {
		return d.locals[n-1] + d.one("", "", ".securityContext", "[0]")
	}
	return d.one(roots...) + d.one("", "", "", ".metadata", ".securityContext", "['a']", "[1]")
}

// maybe draws a value that may be none.
func (d *policyDraw) maybe() string {
	return d.path() + d.one(".?securityContext.?privileged", ".?securityContext.privileged", "[?'name']", ".?spec.?hostNetwork", "[?0]", ".?none", "[?0].name", ".?labels.?team")
}

func (d *policyDraw) any(depth int) string {
	switch rapid.IntRange(0, 6).Draw(d.T, "any") {
	case 0:
		return d.text(depth)
	case 1:
		return d.number(depth)
	case 2:
		return d.list(depth - 1)
	case 3:
		return d.one("null", "true", "1.5", "{}", "dyn(1)", "1u", "b'a'")
	case 4:
		return d.one(d.collection(), "variables.maybe", "variables.n", "variables.team")
	}
	return d.path() + d.one("", ".name", ".spec")
}

func (d *policyDraw) text(depth int) string {
	switch rapid.IntRange(0, 7).Draw(d.T, "text") {
	case 0:
		return quote(d.word())
	case 1:
		return "variables.team"
	case 2:
		if depth > 0 {
			return "(" + d.text(depth-1) + " + " + d.text(depth-1) + ")"
		}
	case 3:
		if depth > 0 {
			return "(" + d.bool(depth-1) + " ? " + d.text(depth-1) + " : " + d.text(depth-1) + ")" + d.one("", "", ".name")
		}
	case 4:
		return d.maybe() + ".orValue(" + quote(d.word()) + ")"
	}
	return d.path() + d.one(".name", ".name", ".image", ".username", ".team", ".text", "")
}

func (d *policyDraw) number(depth int) string {
	switch rapid.IntRange(0, 5).Draw(d.T, "number") {
	case 0:
		return d.one("0", "1", "3", "80", "9223372036854775807", "1.5")
	case 1:
		return "size(" + d.one(d.collection(), d.text(0), d.list(depth-1), d.path()) + ")"
	case 2:
		return d.one("variables.n", d.list(depth-1)+".size()")
	case 3:
		if depth > 0 {
			return "(" + d.number(depth-1) + " + " + d.number(depth-1) + ")"
		}
	}
	return d.path() + d.one(".replicas", ".n", ".containerPort", "")
}

func (d *policyDraw) list(depth int) string {
	if depth > 0 {
		switch rapid.IntRange(0, 6).Draw(d.T, "list") {
		case 0:
			return "(" + d.list(depth-1) + " + " + d.list(depth-1) + ")"
		case 1:
			return "[" + d.any(depth-1) + ", " + d.any(depth-1) + "]"
		case 2, 3:
			over, name := d.list(depth-1), d.local()
			defer d.end()
			return over + d.one(".map("+name+", "+d.bool(depth-1)+", ", ".map("+name+", ") + d.one(d.any(depth-1), d.text(depth-1), name, "1") + ")"
		case 4:
			over, name := d.list(depth-1), d.local()
			defer d.end()
			return over + ".filter(" + name + ", " + d.bool(depth-1) + ")"
		}
	}
	return d.one("variables.all", "object.spec.containers", "object.spec.?initContainers.orValue([])", "request.userInfo.groups", "[1, 2]", "['a', 'web']", "[[], []]", "[]")
}

func (d *policyDraw) collection() string {
	return d.one("variables.labels", "object.metadata.labels", "cluster.labels", "params.data", "request.userInfo.groups", "{}", "variables.all")
}

func (d *policyDraw) pod() string {
	spec := []string{`"containers":` + d.containers()}
	spec = append(spec, d.some(50, `"initContainers":`+d.containers(), `"hostNetwork":`+d.one("true", "false", "null"), `"replicas":`+d.one("3", "1.5", "1", `"a"`),
		`"text":`+d.json(), `"securityContext":{"privileged":true,"name":"x"}`, `"name":`+d.json())...)
	metadata := d.some(70, `"name":`+d.json(), `"labels":`+d.members(d.some(50, `"team":`+d.json(), `"a":"b"`, `"web":"prod"`)), `"namespace":"default"`)
	return `{"apiVersion":"v1","kind":"Pod","metadata":` + d.members(metadata) + `,"spec":` + d.members(spec) + `}`
}

func (d *policyDraw) containers() string {
	var list []string
	for range rapid.IntRange(0, 3).Draw(d.T, "containers") {
		list = append(list, d.members(d.some(70, `"name":`+d.json(), `"image":"registry.example.com/team/image:1.2.3-0123456789-0123456789"`,
			`"securityContext":{"privileged":`+d.one("true", "false", "null", "1")+`,"name":"a"}`, `"ports":[{"containerPort":80}]`)))
	}
	return "[" + strings.Join(list, ",") + "]"
}
