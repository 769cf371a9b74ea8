// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const (
	defaultTolerations = "scheduler.alpha.kubernetes.io/defaultTolerations"
	tolerationsAllowed = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"

	// Tolerations of the cases, in JSON, which is YAML, too.
	v  = `{"key":"testKey","operator":"Equal","value":"testValue","effect":"NoSchedule"}`
	v1 = `{"key":"testKey","operator":"Equal","value":"testValue1","effect":"NoSchedule"}`
	v2 = `{"key":"testKey","operator":"Equal","value":"testValue2","effect":"NoSchedule"}`

	pressure = `{"key":"node.kubernetes.io/memory-pressure","operator":"Exists","effect":"NoSchedule"}`

	burstable  = "containers: [{resources: {limits: {cpu: 1}, requests: {cpu: 500m}}}]"
	bestEffort = "containers: [{resources: {limits: {cpu: 0, gpu: 1}}}]"
)

// The cases of kube-apiserver's own tests: tolerations of the cluster, the namespace and the
// pod; whitelists of the namespace and the cluster; "-": the annotation is not there. What
// the pod has then; "!": it is denied, because of the whitelist of which scope.
func TestPodTolerationRestriction(t *testing.T) {
	for name, row := range map[string]struct{ spec, byDefault, namespace, own, whitelist, clusters, want string }{
		"the cluster's":                             {bestEffort, v, "-", "", "-", "", v},
		"the cluster's, which the pod has":          {bestEffort, v, "[]", v, "-", "", v},
		"the namespace's, which the pod has":        {bestEffort, "", "[" + v + "]", v, "-", "", v},
		"the namespace's":                           {bestEffort, "", "[" + v + "]", "", "-", "", v},
		"the namespace's, besides":                  {bestEffort, "", "[" + v + "]", v1, "-", "", v1 + "," + v},
		"the namespace has none":                    {bestEffort, v2, "[]", v1, "-", "", v1},
		"the namespace has none, written empty":     {bestEffort, v2, "", v1, "-", "", v1},
		"the namespace has none, written null":      {bestEffort, v2, "null", v1, "-", "", v1},
		"in the whitelist":                          {bestEffort, "", "[" + v + "]", "", "[" + v + "]", "", v},
		"none at all":                               {bestEffort, v, "[]", "", "-", "", ""},
		"the namespace's whitelist is empty":        {bestEffort, "", "-", v, "[]", v1, v},
		"not in the whitelist":                      {bestEffort, "", "[" + v + "]", "", "[" + v1 + "]", "", "!namespace"},
		"not in the cluster's whitelist":            {bestEffort, "", "-", v, "-", v1, "!cluster"},
		"no tolerations, with a whitelist":          {bestEffort, "", "-", "", "[" + v1 + "]", v1, ""},
		"two of one key":                            {bestEffort, "", "[]", v + "," + v1, "[]", "", v + "," + v1},
		"memory pressure":                           {burstable, "", "[" + v + "]", "", "[]", "", v + "," + pressure},
		"memory pressure, by an init container":     {"initContainers: [{resources: {requests: {memory: 1}}}]", "", "-", "", "-", "", pressure},
		"memory pressure, by the pod":               {"resources: {limits: {memory: 1}}, " + bestEffort, "", "-", "", "-", "", pressure},
		"no memory pressure, by the pod":            {"resources: {}, " + burstable, "", "-", "", "-", "", ""},
		"memory pressure is not in the whitelist":   {burstable, "", "-", "", "[" + v + "]", "", "!namespace"},
		"what others cover is left out":             {bestEffort, "", `[{"operator":"Exists"}]`, v + "," + v1 + `,{"operator":"Lt","key":"k"}`, "-", "", `{"operator":"Exists"}`},
		"what covers the namespace's is kept":       {bestEffort, "", "[" + v + "," + v1 + "]", v2 + `,{"key":"testKey","operator":"Exists"}`, "-", "", `{"key":"testKey","operator":"Exists"}`},
		"an effect covers itself":                   {bestEffort, "", `[{"key":"a","operator":"Exists","effect":"NoExecute"}]`, `{"key":"a","operator":"Exists","effect":"NoSchedule"}`, "-", "", `{"key":"a","operator":"Exists","effect":"NoSchedule"},{"key":"a","operator":"Exists","effect":"NoExecute"}`},
		"more seconds cover fewer":                  {bestEffort, "", `[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}]`, `{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":61}`, "-", "", `{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":61}`},
		"fewer do not cover more":                   {bestEffort, "", `[{"key":"a","operator":"Exists","effect":"NoExecute"}]`, `{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":61}`, "-", "", `{"key":"a","operator":"Exists","effect":"NoExecute"}`},
		"the same are the same, seconds among them": {bestEffort, "", `[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":61}]`, `{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":61}`, "-", "", `{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":61}`},
		"no operator covers Equal":                  {bestEffort, "", `[{"key":"a","value":"b","operator":"Equal"}]`, `{"key":"a","value":"b"}`, "-", "", `{"key":"a","value":"b"}`},
		"Equal does not cover no operator":          {bestEffort, "", `[{"key":"a","value":"b"}]`, `{"key":"a","value":"b","operator":"Equal"}`, "-", "", `{"key":"a","value":"b"}`},
		"another value is not covered":              {bestEffort, "", `[{"key":"a","value":"b","operator":"Equal"}]`, `{"key":"a","value":"c","operator":"Equal"}`, "-", "", `{"key":"a","value":"c","operator":"Equal"},{"key":"a","value":"b","operator":"Equal"}`},
		"an operator that nobody knows covers none": {bestEffort, "", `[{"key":"a","operator":"Lt","value":"2"}]`, `{"key":"a","operator":"Lt","value":"1"}`, "-", "", `{"key":"a","operator":"Lt","value":"1"},{"key":"a","operator":"Lt","value":"2"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := configured(t, "PodTolerationRestriction", "{default: ["+row.byDefault+"], whitelist: ["+row.clusters+"]}")
			annotations := map[string]string{}
			for key, text := range map[string]string{defaultTolerations: row.namespace, tolerationsAllowed: row.whitelist} {
				if text != "-" {
					annotations[key] = text
				}
			}
			q := request{object: pod(row.own, row.spec), caller: storing(t, namespaces, annotated(annotations))}
			if scope, ok := strings.CutPrefix(row.want, "!"); ok {
				p.mutate(q).says(t, "403 pod tolerations (possibly merged with namespace default tolerations) conflict with its "+scope+" whitelist")
				if row.own != "" {
					p.validate(q).says(t, "403 pod tolerations (possibly merged with namespace default tolerations) conflict with its "+scope+" whitelist")
				}
				return
			}
			got := p.mutate(q)
			got.is(t, pod(row.want, row.spec))
			q.object = got.object
			p.validate(q).says(t, "allowed")
			p.mutate(q).is(t, got.object)
		})
	}
}

// annotated is the namespace with annotations.
func annotated(annotations map[string]string) string {
	text, err := json.Marshal(annotations)
	if err != nil {
		panic(err)
	}
	return "{metadata: {name: shop, annotations: " + string(text) + "}}"
}

// An update gets no defaults, and is held to the whitelist.
func TestPodTolerationRestrictionUpdates(t *testing.T) {
	p := configured(t, "PodTolerationRestriction", "{default: ["+v2+"]}")
	q := request{operation: "UPDATE", object: pod(v1, bestEffort), old: pod(v1, bestEffort), caller: storing(t, namespaces, annotated(map[string]string{defaultTolerations: "[" + v + "]"}))}
	p.mutate(q).is(t, q.object)
	p.validate(q).says(t, "allowed")
	q.object = pod(v1, burstable)
	p.mutate(q).is(t, pod(v1+","+pressure, burstable))
	q.caller = storing(t, namespaces, annotated(map[string]string{tolerationsAllowed: "[" + v + "]"}))
	const denied = "403 pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
	p.mutate(q).says(t, denied)
	p.validate(q).says(t, denied)
	q.subresource = "status"
	p.mutate(q).is(t, q.object)
	p.validate(q).says(t, "allowed")
}

// A pod may say itself of which class it is, as kube-apiserver's plugin takes it.
func TestPodTolerationRestrictionClass(t *testing.T) {
	p := configured(t, "PodTolerationRestriction", "")
	cluster := storing(t, namespaces, annotated(nil))
	for class, want := range map[string]string{"Burstable": "tolerations: [" + pressure + "]", "BestEffort": "", "Guaranteed": "tolerations: [" + pressure + "]"} {
		said := func(spec string) string {
			return "{metadata: {name: web}, spec: {" + spec + "}, status: {qosClass: " + class + "}}"
		}
		p.mutate(request{object: said(""), caller: cluster}).is(t, said(want))
	}
}

// What a namespace says badly is denied, as kube-apiserver does, and so is what there is no
// namespace for.
func TestPodTolerationRestrictionDenies(t *testing.T) {
	p := configured(t, "PodTolerationRestriction", "")
	web := pod(v, bestEffort)
	for text, want := range map[string]string{
		"{":           "403 unexpected end of JSON input",
		"{}":          "403 json: cannot unmarshal object into Go value of type []v1.Toleration",
		`[{"key":1}]`: "403 json: cannot unmarshal number into Go struct field Toleration.key of type string",
	} {
		p.mutate(request{object: web, caller: storing(t, namespaces, annotated(map[string]string{defaultTolerations: text}))}).says(t, want)
		p.mutate(request{object: web, caller: storing(t, namespaces, annotated(map[string]string{tolerationsAllowed: text}))}).says(t, want)
		p.validate(request{object: web, caller: storing(t, namespaces, annotated(map[string]string{tolerationsAllowed: text}))}).says(t, want)
		p.validate(request{object: web, caller: storing(t, namespaces, annotated(map[string]string{defaultTolerations: text}))}).says(t, "allowed")
	}
	p.mutate(request{object: web, caller: storing(t, namespaces)}).says(t, `404 namespaces "shop" not found`)
	p.validate(request{object: web, caller: storing(t, namespaces)}).says(t, `404 namespaces "shop" not found`)
	p.validate(request{object: pod("", ""), caller: storing(t, namespaces)}).says(t, "allowed")
}

// K12 Tolerations are compared each with each, so there are not too many of them.
func TestK12Tolerations(t *testing.T) {
	const (
		ofNamespace = `403 pods "web" is forbidden: a pod, those of its namespace included, and a whitelist may have at most 1000 tolerations`
		ofResources = `403 pods "web" is forbidden: a pod, those for its extended resources included, may have at most 1000 tolerations`
		ofClass     = `403 pods "web" is forbidden: a pod, those of its RuntimeClass included, may have at most 1000 tolerations`
	)
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"key":"k%d","operator":"Exists"}`, i)
		}
		return strings.Join(list, ",")
	}
	p := configured(t, "PodTolerationRestriction", "")
	for _, row := range []struct {
		own              int
		defaults, listed string
		want             string
	}{
		{1000, "-", "-", "allowed"}, {999, "[" + v + "]", "-", "allowed"}, {1000, "[" + v + "]", "-", ofNamespace},
		{0, "[" + many(1000) + "]", "-", "allowed"}, {0, "[" + many(1001) + "]", "-", ofNamespace},
		{1000, "-", "[" + many(1000) + "]", "allowed"}, {1001, "-", "[" + many(1001) + "]", ofNamespace},
		{1, "-", "[" + many(1001) + "]", ofNamespace}, {1001, "-", "[" + many(1000) + "]", ofNamespace},
	} {
		annotations := map[string]string{}
		for key, text := range map[string]string{defaultTolerations: row.defaults, tolerationsAllowed: row.listed} {
			if text != "-" {
				annotations[key] = text
			}
		}
		q := request{object: pod(many(row.own), bestEffort), caller: storing(t, namespaces, annotated(annotations))}
		p.mutate(q).says(t, row.want)
		if row.listed != "-" {
			p.validate(q).says(t, row.want)
		}
	}
	class := "{metadata: {name: kata}, scheduling: {tolerations: [" + v + "]}}"
	r := configured(t, "RuntimeClass", "")
	r.mutate(request{object: pod(many(999), "runtimeClassName: kata"), caller: storing(t, runtimeClasses, class)}).says(t, "allowed")
	r.mutate(request{object: pod(many(1000), "runtimeClassName: kata"), caller: storing(t, runtimeClasses, class)}).says(t, ofClass)
	requests := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`a.b/r%d: "1"`, i)
		}
		return "containers: [{name: a, resources: {requests: {cpu: 1, " + strings.Join(list, ", ") + "}}}, {name: b, resources: {requests: {" + strings.Join(list, ", ") + "}}}]"
	}
	for _, row := range []struct {
		own, requests int
		want          string
	}{{2000, 0, "allowed"}, {1000, 0, "allowed"}, {999, 1, "allowed"}, {0, 1000, "allowed"}, {1000, 1, ofResources}, {0, 1001, ofResources}, {600, 600, ofResources}, {30_000, 30_000, ofResources}} {
		configured(t, "ExtendedResourceToleration", "").mutate(request{object: pod(many(row.own), requests(row.requests))}).says(t, row.want)
	}
}

// K1 The cases of kube-apiserver's own tests of its configuration.
func TestPodTolerationRestrictionConfiguration(t *testing.T) {
	for configuration, want := range map[string]string{
		"": "",
		`{apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration, default: [
			{key: foo, operator: Exists, value: "", effect: NoExecute, tolerationSeconds: 60}, {key: foo, operator: Equal, value: bar, effect: NoExecute, tolerationSeconds: 60},
			{key: foo, operator: Equal, value: bar, effect: NoSchedule}, {operator: Exists, effect: PreferNoSchedule}],
			whitelist: [{key: foo, value: bar, effect: NoSchedule}, {key: foo, operator: Equal, value: bar}]}`: "",
		"{whitelist: [{key: foo, operator: Exists, value: bar, effect: NoSchedule}]}":        `whitelist[0].operator: Invalid value: "bar": value must be empty when ` + "`operator` is 'Exists'",
		"{default: [{operator: Exists}, {operator: Equal, value: bar, effect: NoSchedule}]}": "default[1].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
		"{default: [{key: a, tolerationSeconds: 1}]}":                                        "default[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
		"{default: [{key: a, operator: Lt, value: '1'}]}":                                    `default[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists"`,
		"{default: [{key: a, effect: Never}]}":                                               `default[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
		"{default: [{key: a/b/c}]}":                                                          `default[0].key: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
		"{default: [{key: a, value: '-'}]}":                                                  `default[0].operator: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		"{apiVersion: v1, kind: Other}":                                                      `apiVersion: Unsupported value: "v1": supported values: "podtolerationrestriction.admission.k8s.io/v1alpha1"` + "\n" + `kind: Unsupported value: "Other": supported values: "Configuration"`,
		"{default: [" + strings.Repeat("{operator: Exists},", 501) + "]}":                    "default: Too many: 501: must have at most 500 items",
		"{defaults: []}": `unknown field "defaults"`,
	} {
		if _, problems := configure(t, "PodTolerationRestriction", configuration); problems != want {
			t.Errorf("%s: it says\n%s\nwant\n%s", configuration, problems, want)
		}
	}
}
