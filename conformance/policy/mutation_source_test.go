// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
)

// mutating makes random policies. Labels, which objectSelectors go by, are not mutated: the
// API server selects all policies by the labels before the first of them. All policies have
// matchConditions, or none: there, those of one have the others see objects as Go's types.
func (g *policySource) mutating() (policies []*mutating.Policy, bindings []*mutating.PolicyBinding) {
	conditions := g.some(50)
	for i := range 1 + g.IntN(3) {
		p := &mutating.Policy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}}
		p.Spec.FailurePolicy = pointer(admissionregistrationv1.FailurePolicyType(g.one("Fail", "Fail", "Ignore")))
		p.Spec.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy
		p.Spec.MatchConstraints = g.mutable(true)
		var names, conditionsOfParams []string
		if g.some(40) {
			p.Spec.ParamKind = pointer(paramKinds[g.IntN(len(paramKinds))])
			names, conditionsOfParams = []string{"params.data.n", "params.data.name", "params.metadata.name"}, paramConditions()
		}
		for j := range g.IntN(4) {
			p.Spec.Variables = append(p.Spec.Variables, admissionregistrationv1.Variable{Name: fmt.Sprintf("v%d", j), Expression: g.value(names, 2)})
			names = append(names, fmt.Sprintf("variables.v%d", j))
		}
		for j := range 1 + g.IntN(2) {
			if conditions {
				p.Spec.MatchConditions = append(p.Spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("c%d", j), Expression: g.one("request.operation != 'DELETE'", g.over(conditionsOfParams, nil, 1))})
			}
		}
		for range 1 + g.IntN(3) {
			p.Spec.Mutations = append(p.Spec.Mutations, g.mutation(names))
		}
		policies = append(policies, p)
		for j := range 1 + g.IntN(2) {
			b := &mutating.PolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d-b%d", i, j)}}
			b.Spec.PolicyName = p.Name
			b.Spec.ParamRef, b.Annotations = g.reference(p.Spec.ParamKind)
			if g.some(30) {
				b.Spec.MatchResources = g.mutable(g.some(50))
			}
			bindings = append(bindings, b)
		}
	}
	return policies, bindings
}

func (g *policySource) mutable(rules bool) *admissionregistrationv1.MatchResources {
	m := g.matches(rules)
	for i := range m.ResourceRules {
		m.ResourceRules[i].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationType(g.one("*", "*", "CREATE", "UPDATE"))}
	}
	return m
}

func (g *policySource) mutation(names []string) admissionregistrationv1.Mutation {
	if g.some(40) {
		return admissionregistrationv1.Mutation{
			PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: g.configuration(names)},
		}
	}
	return admissionregistrationv1.Mutation{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch,
		JSONPatch: &admissionregistrationv1.JSONPatch{Expression: g.patch(names)},
	}
}

// patch is an expression of a list of operations, some of which fail.
func (g *policySource) patch(names []string) string {
	list := ""
	for i := range g.IntN(4) {
		if i > 0 {
			list += ", "
		}
		list += g.operation(names)
	}
	if list == "" {
		list = `JSONPatch{op: "test", path: "/kind", value: "Pod"}`
	}
	list = "[" + list + "]"
	if g.some(20) {
		return "(" + g.condition(names, 1) + ") ? " + list + " : [" + g.operation(names) + "]"
	}
	return list
}

func (g *policySource) operation(names []string) string {
	at := func(path string) string {
		return fmt.Sprintf("JSONPatch{op: %q, path: %s, value: ", g.one("add", "add", "replace"), path)
	}
	return g.one(
		at(`"/metadata/annotations/a"`)+g.text(names)+"}",
		at(`"/metadata/annotations/" + jsonpatch.escapeKey("example.com/a~b")`)+g.text(names)+"}",
		at(`"/metadata/annotations/b"`)+g.literal()+"}",
		`JSONPatch{op: "add", path: "/metadata/annotations", value: {"x": `+g.text(names)+`}}`,
		at(`"/spec/nodeName"`)+g.text(names)+"}",
		at(`"/spec/priority"`)+g.one("7", "object.spec.priority", "size(object.spec.containers)", g.literal())+"}",
		at(`"/spec/containers/0/image"`)+`"r/" + object.spec.containers[0].image}`,
		at(`"/spec/nodeName"`)+"'n' + object.metadata.?annotations.a.orValue('none')}",
		at(`"/spec/containers/-"`)+`Object.spec.containers{name: "added", image: `+g.text(names)+`}}`,
		at(`"/spec/containers/0/env"`)+`[Object.spec.containers.env{name: "A", value: `+g.text(names)+`}, Object.spec.containers.env{name: "B"}]}`,
		at(`"/spec/tolerations"`)+`[{"key": "a", "operator": "Exists"}]}`,
		at(`"/spec/securityContext"`)+`Object.spec.securityContext{runAsUser: 7, sysctls: `+g.one("[]", "[Object.spec.securityContext.sysctls{name: 'a', value: 'b'}]", "[Object.spec.wrong{name: 'a', value: 'b'}]")+`}}`,
		`JSONPatch{op: "test", path: "/spec/priority", value: `+g.one("7", "object.spec.priority", "object.spec.?priority.orValue(null)", "'a'")+"}",
		`JSONPatch{op: "test", path: "/spec/nothing/there", value: 1}`,
		`JSONPatch{op: "copy", from: "/metadata/name", path: "/spec/nodeName"}`,
		`JSONPatch{op: "move", from: "/spec/nodeName", path: "/spec/hostname"}`,
		`JSONPatch{op: "remove", path: "/spec/priority"}`,
		`JSONPatch{op: "remove", path: "/spec/nothing"}`,
		`JSONPatch{op: "add", path: "/spec/unknown/field", value: 1}`,
		`JSONPatch{op: "wrong", path: "/spec"}`,
	)
}

// literal is a value that every API server can convert. Lists and maps that Go has types
// for are none: those of request, and of objects in a policy with matchConditions.
func (g *policySource) literal() string {
	return g.one("1", "'a'", "true", "null", "[1, 2, 3].map(x, x * 2)", "{'a': 1, 'b': [2u]}", "{1: 2}", "dyn(1.5)", "duration('1h')", "b'bytes'", "timestamp('2026-01-02T03:04:05Z')",
		"9007199254740993", "Object.spec{a: 9}", "object.metadata.name", "quantity('1Gi')", "optional.of('a')", "optional.none()", "type(1)", "[Object.spec{a: {'b': 1}}]")
}

// configuration is an expression of an apply configuration, some of which cannot be merged.
func (g *policySource) configuration(names []string) string {
	metadata := g.one("", `metadata: Object.metadata{annotations: {"a": `+g.text(names)+`, "example.com/a~b": "x"}}, `, `metadata: Object.metadata{annotations: {"kept": "no"}, finalizers: ["x/y"]}, `,
		`metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{uid: "u", name: "n", kind: "k", apiVersion: "v1"}]}, `)
	container := func(name string) string {
		return `Object.spec.containers{name: ` + name + `, ` + g.one(`image: "applied"`, `image: `+g.text(names), `env: [Object.spec.containers.env{name: "A", value: "1"}]`,
			`ports: [Object.spec.containers.ports{containerPort: 80, protocol: "TCP"}]`, `command: ["sh"]`, `resources: Object.spec.containers.resources{limits: {"cpu": "1"}}`) + `}`
	}
	return "Object{" + metadata + "spec: Object.spec{" + g.one(
		`nodeName: `+g.text(names),
		`priority: `+g.one("7", "size(object.spec.containers)", "'seven'", "object.spec.priority"),
		`containers: [`+container(`"c0"`)+`]`,
		`containers: [`+container(`"c0"`)+`, `+container(`"added"`)+`]`,
		`containers: object.spec.containers.map(c, `+container("c.name")+`)`,
		`containers: [Object.spec.containers{name: "", image: "nameless"}]`,
		`initContainers: [Object.spec.initContainers{name: "init", image: "i"}]`,
		`nodeSelector: {"a": "b"}`,
		`tolerations: [Object.spec.tolerations{key: "a"}]`,
		`affinity: Object.spec.affinity{nodeAffinity: Object.spec.affinity.nodeAffinity{}}`,
		`securityContext: Object.spec.wrong{runAsUser: 7}`,
		`securityContext: Object.spec.securityContext{runAsUser: 7, seccompProfile: Object.spec.securityContext.seccompProfile{type: "RuntimeDefault"}}`,
		`volumes: [Object.spec.volumes{name: "v", emptyDir: Object.spec.volumes.emptyDir{}}]`,
		`imagePullSecrets: [Object.spec.imagePullSecrets{name: "s"}]`,
		`nodeName: 7`,
		`topologySpreadConstraints: [Object.spec.topologySpreadConstraints{maxSkew: 1, topologyKey: "z", whenUnsatisfiable: "DoNotSchedule"}]`,
	) + "}}"
}
