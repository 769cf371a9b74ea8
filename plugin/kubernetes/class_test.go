// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Classes of which one may be the default: their names, annotations and ages.
const (
	first       = "{metadata: {name: default1, annotations: {%A: 'true'}}}"
	second      = "{metadata: {name: default2, annotations: {%A: 'true'}}}"
	old         = "{metadata: {name: default1, creationTimestamp: '2022-01-01T00:00:00Z', annotations: {%A: 'true'}}}"
	young       = "{metadata: {name: default2, creationTimestamp: '2022-01-01T00:00:01Z', annotations: {%A: 'true'}}}"
	notDefault  = "{metadata: {name: nondefault1, annotations: {%A: 'false'}}}"
	says        = "{metadata: {name: nondefault2, annotations: {%A: ''}}}"
	saysNothing = "{metadata: {name: nondefault3}}"
)

// The cases of kube-apiserver's own tests, and which class each comes to; "": none.
var defaultClasses = map[string]struct {
	classes     []string
	named, want string
}{
	"no default":                 {[]string{notDefault, says, saysNothing}, "", ""},
	"one":                        {[]string{first, notDefault, says, saysNothing}, "", "default1"},
	"one, and none wanted":       {[]string{first, notDefault, says, saysNothing}, "''", "''"},
	"one, and another wanted":    {[]string{first, notDefault, says, saysNothing}, "foo", "foo"},
	"two, and none wanted":       {[]string{first, second, notDefault}, "''", "''"},
	"two, and another wanted":    {[]string{first, second, notDefault}, "foo", "foo"},
	"two of no age":              {[]string{second, first, notDefault}, "", "default1"},
	"two, of which one is newer": {[]string{old, young, notDefault}, "", "default2"},
	"an old one, and one of no age, which is older": {[]string{"{metadata: {name: a, annotations: {%A: 'true'}}}", young}, "", "default2"},
}

func TestDefaultStorageClass(t *testing.T) {
	storageClasses := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	for _, annotation := range []string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"} {
		p := defaulting(t, "DefaultStorageClass", storageClasses, annotation, "persistentvolumeclaims", "storageClassName")
		for _, class := range []string{"''", "foo"} {
			beta := "{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: " + class + "}}, spec: {}}"
			p.mutate(request{resource: "persistentvolumeclaims", object: beta, caller: storing(t, storageClasses, strings.ReplaceAll(first, "%A", annotation))}).is(t, beta)
		}
	}
}

func TestDefaultIngressClass(t *testing.T) {
	ingressClasses := schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"}
	p := defaulting(t, "DefaultIngressClass", ingressClasses, "ingressclass.kubernetes.io/is-default-class", "networking.k8s.io/ingresses", "ingressClassName")
	for _, class := range []string{"''", "foo"} {
		named := "{metadata: {annotations: {kubernetes.io/ingress.class: " + class + "}}, spec: {}}"
		p.mutate(request{resource: "networking.k8s.io/ingresses", object: named, caller: storing(t, ingressClasses, strings.ReplaceAll(first, "%A", "ingressclass.kubernetes.io/is-default-class"))}).is(t, named)
	}
}

// defaulting tests a plugin that gives objects of a resource a default class.
func defaulting(t *testing.T, name string, classes schema.GroupVersionResource, annotation, resource, field string) asked {
	t.Helper()
	p := configured(t, name, "")
	with := func(class string) string {
		if class == "" {
			return "{metadata: {name: web}, spec: {}}"
		}
		return "{metadata: {name: web}, spec: {" + field + ": " + class + "}}"
	}
	for name, row := range defaultClasses {
		t.Run(name, func(t *testing.T) {
			p := asked{t, p.Instance}
			var list []string
			for _, class := range row.classes {
				list = append(list, strings.ReplaceAll(class, "%A", annotation))
			}
			q := request{resource: resource, object: with(row.named), caller: storing(t, classes, list...)}
			p.mutate(q).is(t, with(row.want))
			for _, other := range []request{{operation: "UPDATE"}, {subresource: "status"}, {resource: "example.com/" + resource}} {
				other.object, other.caller = q.object, q.caller
				if other.resource == "" {
					other.resource = resource
				}
				p.mutate(other).is(t, q.object)
			}
		})
	}
	return p
}
