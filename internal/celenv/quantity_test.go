// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"
	"strings"
	"testing"
	"time"

	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// H5 A quantity that takes minutes to compute with is an error, in conditions and in
// expressions of policies; any other one is what kube-apiserver makes of it.
func TestH5QuantitiesAreBound(t *testing.T) {
	const unbound = "error"
	for text, want := range map[string]string{
		"1Gi": "true", "1e3": "true", "1.5E9": "true", "-1e-3": "true", "1E": "true", "12e100": "true", "1e-100": "true", strings.Repeat("9", 256): "true",
		"": "false", "Three": "false", "1e": "false", "1e99999999999999999999": "false", "e": "false",
		"1e101": unbound, "1e-101": unbound, "1e999999999": unbound, "1E+999999999": unbound, "-1e-999999999": unbound,
		"1234567890123456789012e100000000": unbound, "1234567890123456789012e-100000000": unbound, strings.Repeat("9", 257): unbound,
	} {
		review := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","kind":{"group":"example.com","version":"v1","kind":"Thing"},"resource":{"group":"example.com","version":"v1","resource":"things"},"object":{"metadata":{"name":"a"},"size":%q}}}`, text)
		for expression, want := range map[string]string{
			"isQuantity(object.size)": want,
			"quantity(object.size).add(quantity('1Gi')).isGreaterThan(quantity('-1e99'))": map[string]string{"true": "true", "false": unbound, unbound: unbound}[want],
		} {
			condition, err := NewCompiler().Compile(expression)
			if err != nil {
				t.Fatal(err)
			}
			if holds, _, err := condition.Evaluate(variablesOf(decode(t, review)), Budget, time.Time{}); err == nil && fmt.Sprint(holds) != want || err != nil && want != unbound {
				t.Errorf("%.40q: condition %s is %v, %v", text, expression, holds, err)
			}
			s := scopeOf(t)
			x, err := s.Compile(expression, Bool)
			if err != nil {
				t.Fatal(err)
			}
			evaluation(t, s, review, time.Time{}, func(e *Evaluation) {
				if v, err := e.Evaluate(x); err == nil && v.JSON() != want || err != nil && want != unbound {
					t.Errorf("%.40q: expression %s is %v, %v", text, expression, v.JSON(), err)
				}
			})
		}
	}
}

// What is bound costs what it costs in kube-apiserver.
func TestBoundQuantitiesCostTheSame(t *testing.T) {
	unbound := plugin.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	for _, expression := range []string{
		"isQuantity(request.name + '0123456789012345678901234567890123456789')", "quantity('1' + '0123456789012345678901234567890123456789').isInteger()",
		"[quantity('1'), quantity('2Gi')].all(q, q.isGreaterThan(quantity('100m')))", "quantity('1Gi').add(quantity('1')) == quantity(request.name)",
	} {
		condition, err := NewCompiler().Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		_, left, _ := condition.Evaluate(variablesOf(decode(t, update)), Budget, time.Time{})
		theirs := unbound.CompileCELExpression(source{text: expression}, plugin.OptionalVariableDeclarations{}, environment.StoredExpressions)
		_, details, _ := theirs.Program.Eval(variablesOf(decode(t, update)))
		if cost := Budget - left; cost != int64(*details.ActualCost()) {
			t.Errorf("%s costs %d and not %d", expression, cost, *details.ActualCost())
		}
	}
}
