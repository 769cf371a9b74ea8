// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import "testing"

const pulls = `{metadata: {name: web}, spec: {
  initContainers: [{name: i1, image: i}, {name: i2, image: i, imagePullPolicy: Never}],
  containers: [{name: c1, image: a, imagePullPolicy: IfNotPresent}, {name: c2, image: b, imagePullPolicy: Always}],
  ephemeralContainers: [{name: e, image: e}],
  volumes: [{name: v, emptyDir: {}}, {name: w, image: {reference: r, pullPolicy: Never}}]}}`

const pulled = `{metadata: {name: web}, spec: {
  initContainers: [{name: i1, image: i, imagePullPolicy: Always}, {name: i2, image: i, imagePullPolicy: Always}],
  containers: [{name: c1, image: a, imagePullPolicy: Always}, {name: c2, image: b, imagePullPolicy: Always}],
  ephemeralContainers: [{name: e, image: e, imagePullPolicy: Always}],
  volumes: [{name: v, emptyDir: {}}, {name: w, image: {reference: r, pullPolicy: Always}}]}}`

func TestAlwaysPullImagesMutates(t *testing.T) {
	p := configured(t, "AlwaysPullImages", "")
	p.mutate(request{object: pulls}).is(t, pulled)
	p.mutate(request{object: pulled}).is(t, pulled)
	// An update without an image that is new is left alone, whatever container has it.
	p.mutate(request{operation: "UPDATE", object: pulls, old: `{spec: {containers: [{image: a}, {image: b}, {image: i}, {image: e}]}}`}).is(t, pulls)
	p.mutate(request{operation: "UPDATE", object: pulls, old: `{spec: {containers: [{image: a}, {image: b}, {image: i}]}}`}).is(t, pulled)
	p.mutate(request{operation: "UPDATE", object: "{spec: {containers: [{image: new}, {image: old}]}}", old: "{spec: {containers: [{image: old}]}}"}).
		is(t, "{spec: {containers: [{image: new, imagePullPolicy: Always}, {image: old, imagePullPolicy: Always}]}}")
	p.mutate(request{operation: "UPDATE", object: pulls}).is(t, pulled) // nobody knows what was there
	// A pod without containers, and what is no pod.
	p.mutate(request{object: "{spec: {}}"}).is(t, "{spec: {}}")
	p.mutate(request{subresource: "ephemeralcontainers", object: pulls}).is(t, pulls)
	p.mutate(request{resource: "apps/pods", object: pulls}).is(t, pulls)
	p.mutate(request{resource: "services", object: pulls}).is(t, pulls)
}

func TestAlwaysPullImagesValidates(t *testing.T) {
	p := configured(t, "AlwaysPullImages", "")
	p.validate(request{object: pulled}).says(t, "allowed")
	p.validate(request{object: `{spec: {containers: [{image: a, imagePullPolicy: Never}]}}`}).says(t,
		`403 pods "web" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"`)
	p.validate(request{object: pulls}).says(t, `403 [pods "web" is forbidden: spec.initContainers[0].imagePullPolicy: Unsupported value: "": supported values: "Always", `+
		`pods "web" is forbidden: spec.initContainers[1].imagePullPolicy: Unsupported value: "Never": supported values: "Always", `+
		`pods "web" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "IfNotPresent": supported values: "Always", `+
		`pods "web" is forbidden: spec.ephemeralContainers[0].imagePullPolicy: Unsupported value: "": supported values: "Always", `+
		`pods "web" is forbidden: spec.volumes[1].image.pullPolicy: Unsupported value: "Never": supported values: "Always"]`)
	p.validate(request{operation: "UPDATE", object: pulls, old: pulls}).says(t, "allowed")
	p.validate(request{subresource: "status", object: pulls}).says(t, "allowed")
	// What is no pod at all has no answer, so the failure policy decides.
	p.validate(request{object: "{spec: 1}"}).says(t, "error: the object cannot be decoded as v1.Pod: spec is not a v1.PodSpec")
	p.validate(request{}).says(t, "error: there is no Pod in the review")
}

func TestAlwaysDeny(t *testing.T) {
	p := configured(t, "AlwaysDeny", "")
	const denied = `403 pods "web" is forbidden: admission control is denying all modifications`
	p.mutate(request{object: pulls}).says(t, denied)
	p.validate(request{object: pulls}).says(t, denied)
	p.validate(request{operation: "DELETE"}).says(t, denied)
	p.validate(request{resource: "apps/deployments", subresource: "scale"}).says(t, `403 deployments.apps "web" is forbidden: admission control is denying all modifications`)
}
