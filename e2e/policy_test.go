// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
)

// rightsOfPolicies give a user what the API asks for, and one of two what a policy asks for.
const rightsOfPolicies = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-policies}
rules:
- {apiGroups: ["", apps, batch], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-policies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-policies}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-hosts}
rules:
- {apiGroups: [example.com], resources: [hosts], verbs: [use]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-hosts}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-hosts}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
`

// H2 H3 H11 H12 H14 H21 H22 H23 H24 J1 TestPolicies has the same unmodified manifests of policies, bindings and params in a
// cluster itself and in the tier before another one, and sends the same random requests to
// both. Verdict, code, reason, text, warnings and resulting object are equal.
func TestPolicies(t *testing.T) {
	n, seed := sizeOfRun(t)
	p := &pairOfControllers{clusters: [2]*cluster{shared.alone, shared.east}}
	for _, c := range p.clusters {
		c.namespaceOf(t, policies, map[string]string{"env": "test"})
		c.apply(t, rightsOfPolicies)
	}
	manifests := policyManifests(t)
	for _, o := range documents(t, manifests[1]) {
		if o.GetKind() == "ConfigMap" { // params, of which some are read from the cluster
			data, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			shared.east.apply(t, string(data))
		}
	}
	p.behind(t, manifests[:]...)
	for _, m := range manifests {
		shared.alone.apply(t, m)
	}
	p.policiesHold(t)
	progress("policies hold in both clusters")

	var trials []*trial
	d := sample.NewDice(seed, 0)
	for i := range n {
		trials = append(trials, &trial{controller: policies, steps: policyRequest(d, fmt.Sprintf("p-%d", i))})
	}
	p.send(t, trials)
	progress("%d trials were sent to both", len(trials))
	came := map[string]int{}
	for _, one := range trials {
		one.comparePolicies(t, came)
	}
	t.Log(n, "trials:", came)
	for _, what := range []string{"allowed", "denied 422", "denied 403", "denied 413", "warned", "mutated", "not mutated"} {
		if came[what] == 0 {
			t.Errorf("none was %s", what)
		}
	}
}

// policyManifests are the policies of the examples, and those of testdata.
func policyManifests(t *testing.T) (texts [2]string) {
	t.Helper()
	for i, pattern := range []string{"../examples/policies/*.yaml", "testdata/policies/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		var list []string
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, strings.TrimSpace(string(data)))
		}
		texts[i] = strings.Join(list, "\n---\n")
	}
	return texts
}

// policiesHold waits until both clusters decide by all policies: by the one that is stored
// last, and by those that mutate a pod.
func (p *pairOfControllers) policiesHold(t *testing.T) {
	t.Helper()
	d := sample.NewDice(1, 1)
	asks := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "asks", Namespace: policies}}
	r := corev1.SchemeGroupVersion.WithResource("configmaps")
	asks.SetGroupVersionKind(r.GroupVersion().WithKind("ConfigMap"))
	for _, c := range p.clusters {
		eventually(t, c.name+": all policies hold", func() error {
			answers, err := c.try(t, []step{created(asks, r, policies, dryRun)})
			if err != nil {
				return err
			}
			if o := policyOutcome(answers[0]); !strings.HasSuffix(o.Message, "all policies hold") {
				return fmt.Errorf("the sentinel: %s", o.text())
			}
			deployment := policyCreate(d, &sample.WorkloadKinds[4], sample.Hardened(), "asks")
			deployment[0].body.(*appsv1.Deployment).Spec.Replicas = new(int32(1))
			if answers, err = c.try(t, deployment); err != nil {
				return err
			}
			if o := policyOutcome(answers[0]); !strings.Contains(o.text(), "example.com/team") {
				return fmt.Errorf("a Deployment: %s", o.text())
			}
			return nil
		})
	}
}

// policyRequest draws a request that policies look at.
func policyRequest(d sample.Dice, name string) (steps []step) {
	defer func() {
		user := sample.Pick(d, "", "ann", "bob")
		for i := range steps {
			if steps[i].user = user; user != "" {
				steps[i].groups = []string{"developers"}
			}
		}
		if last := &steps[len(steps)-1]; user != "" && d.One(4) {
			last.groups = append(last.groups, "on-call")
		}
	}()
	switch {
	case d.One(8):
		return requested(d, policies, controllerOf("DenyServiceExternalIPs").Random(d), policies, name)
	case d.One(12):
		steps = policyCreate(d, &sample.WorkloadKinds[0], sample.Hardened(), name)
		steps[0].path = strings.TrimSuffix(steps[0].path, dryRun)
		return append(steps, step{request: request{
			method: http.MethodPost, contentType: runtime.ContentTypeJSON,
			path: steps[0].path + "/" + name + "/" + sample.Pick(d, "exec?command=sh&stdout=true", "attach?stdout=true"),
		}})
	}
	k := &sample.WorkloadKinds[d.IntN(len(sample.WorkloadKinds))]
	steps = policyCreate(d, k, sample.Spoiled(d), name)
	if d.One(3) { // an update of what was made of a pod without faults
		spoiled := inJSON(steps[0].body)
		steps = policyCreate(d, k, sample.Hardened(), name)
		steps[0].path = strings.TrimSuffix(steps[0].path, dryRun)
		steps = append(steps, step{request{method: http.MethodPut, contentType: runtime.ContentTypeJSON, path: steps[0].path + "/" + name + dryRun}, func(o map[string]any) {
			if k.Kind == "Pod" {
				eachContainer(o, spoiled, "image")
			} else {
				o["spec"], o["template"] = spoiled["spec"], spoiled["template"]
			}
			for _, key := range []string{"labels", "annotations", "finalizers"} {
				if value, ok := spoiled["metadata"].(map[string]any)[key]; ok {
					o["metadata"].(map[string]any)[key] = value
				}
			}
		}})
	}
	return steps
}

// policyCreate creates a workload of a kind.
func policyCreate(d sample.Dice, k *sample.WorkloadKind, p *corev1.Pod, name string) []step {
	p.OwnerReferences = nil // they would be of other objects
	o := k.Of(p)
	accept(d, policies, o, name, policies)
	o.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	r, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	return []step{created(o, r, policies, dryRun)}
}

// policyOutcome is an outcome in the words of a policy: in a cluster of its own what is
// denied is named before. Of several policies that deny, that cluster tells one, in no
// order, by its first validation that does not hold. It warns in no order.
func policyOutcome(a answer) outcome {
	o := a.outcome()
	if head, text, ok := strings.Cut(o.Message, " is forbidden: "); ok && !strings.Contains(head, "policy") && (strings.HasPrefix(text, "ValidatingAdmissionPolicy ") || strings.HasPrefix(text, "policy ")) {
		o.Message = text
	}
	o.Warnings = slices.Sorted(slices.Values(o.Warnings))
	return o
}

// comparePolicies compares what came of each step.
func (one *trial) comparePolicies(t *testing.T, came map[string]int) {
	t.Helper()
	for i := range max(len(one.answers[0]), len(one.answers[1])) {
		s := one.steps[i]
		if i >= min(len(one.answers[0]), len(one.answers[1])) {
			t.Errorf("%s %s was sent to one of them", s.method, s.path)
			return
		}
		theirs, ours := policyOutcome(one.answers[0][i]), policyOutcome(one.answers[1][i])
		if theirs.Message != "" && theirs.Message != ours.Message {
			isTheirs := func(denial string) bool {
				return denial == theirs.Message || strings.HasPrefix(denial, theirs.Message+"\n")
			}
			switch {
			case isTheirs(ours.Message):
				ours.Message = theirs.Message
			case slices.ContainsFunc(ours.more, isTheirs):
				came["another first"]++
				ours.Message, ours.Code, ours.Reason = theirs.Message, theirs.Code, theirs.Reason
			}
		}
		if theirs.text() != ours.text() {
			if want, ok := invalid("", theirs, ours); !ok || want.text() != ours.text() {
				body, _ := json.Marshal(s.body)
				t.Errorf("%s %s: the outcomes differ (-theirs +ours):\n%s\n%s\n%s", s.method, s.path, diff.Diff(theirs, ours), ours.more, body)
				came["different"]++
				continue
			}
		}
		switch {
		case strings.HasPrefix(theirs.Message, "ValidatingAdmissionPolicy"):
			came[fmt.Sprint("denied ", theirs.Code)]++
		case strings.HasPrefix(theirs.Message, "policy "):
			came["not mutated"]++
		case theirs.Code >= 400:
			came[fmt.Sprint("refused ", theirs.Code)]++
		default:
			came["allowed"]++
			if strings.Contains(theirs.text(), "example.com/by") {
				came["mutated"]++
			}
		}
		if slices.ContainsFunc(theirs.Warnings, func(w string) bool { return strings.HasPrefix(w, "Validation failed for ") }) {
			came["warned"]++
		}
	}
}
