// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// ownLibrary are the policies of this repository.
const ownLibrary = "../../examples/policies"

// TestLibrary has the policies of libraries, unmodified, decide workloads that keep to
// them and workloads that do not, in the API server's own dispatcher of policies and in
// ours, each policy by itself and all of a library together. Everything that they come to
// is equal (H1 H2 H3 H4 H5 H8).
//
// CONFORMANCE_LIBRARY lists directories with further libraries, as PATH does. They need
// not be valid in whole. Policies with a paramKind are evaluated with null.
func TestLibrary(t *testing.T) {
	libraries := append([]string{ownLibrary}, filepath.SplitList(os.Getenv("CONFORMANCE_LIBRARY"))...)
	requests := libraryRequests(t)
	for _, dir := range libraries {
		t.Run(filepath.Base(dir), func(t *testing.T) { playLibrary(t, dir, requests) })
	}
}

func playLibrary(t *testing.T, dir string, requests []*policyAdmission) {
	oracle, ours := newPolicyOracle(t), newPolicySubject(t)
	all, pairs := readLibrary(t, dir), 0
	var played []*validating.Policy
	for _, p := range all {
		came, bound := map[string]int{}, bindingsOf(p.policy)
		if !ours.loadObjects(p.objects(bound)) {
			t.Errorf("%s: %s is refused: %v", p.file, p.policy.Name, ours.refused[len(ours.refused)-1])
			continue
		}
		hooks := oracle.hooks([]*validating.Policy{p.policy}, bound)
		for _, a := range requests {
			pairs++
			came[compareOne(t, oracle, ours, hooks, a)]++
		}
		switch {
		case came["allowed"] > 0 && came["denied"]+came["error"] > 0:
		case dir == ownLibrary:
			t.Errorf("%s: %s is not played in both ways: %v", p.file, p.policy.Name, came)
		default:
			t.Logf("%s has one verdict for all that it is about: %v", p.policy.Name, came)
		}
		played = append(played, p.policy)
	}
	pairs += playTogether(t, oracle, ours, played)
	t.Logf("%d of %d policies ran, %d pairs", len(played), len(all), pairs)
	if len(played) == 0 {
		t.Error("no policy ran")
	}
}

// playTogether has random policies decide random workloads together: so few that a
// review's warnings and annotations stay below the bounds of an answer.
func playTogether(t *testing.T, oracle *policyOracle, ours *policySubject, played []*validating.Policy) (pairs int) {
	t.Helper()
	const sets, most, workloads = 50, 4, 20
	seed := number(t, "CONFORMANCE_SEED", 1)
	g := &policySource{rand.New(rand.NewPCG(seed, seed))}
	for range sets {
		var some []*validating.Policy
		var bound []*validating.PolicyBinding
		for _, i := range g.Perm(len(played))[:min(most, len(played))] {
			some = append(some, played[i])
			bound = append(bound, bindingsOf(played[i])...)
		}
		slices.SortFunc(some, func(a, b *validating.Policy) int { return strings.Compare(a.Name, b.Name) })
		if !ours.load(t, some, bound) {
			t.Fatal(ours.refused)
		}
		hooks := oracle.hooks(some, bound)
		for range workloads {
			compareOne(t, oracle, ours, hooks, g.workload())
			pairs++
		}
	}
	return pairs
}

// compareOne reports what the oracle came to; "": the policies are not about that.
func compareOne(t *testing.T, oracle *policyOracle, ours *policySubject, hooks []validating.PolicyHook, a *policyAdmission) string {
	t.Helper()
	want, got := oracle.decide(t, hooks, a), ours.decide(t, a)
	kind := want.kind()
	if kind == "allowed" && !slices.ContainsFunc(hooks, func(h validating.PolicyHook) bool { return isAbout(h.Policy, a) }) {
		kind = ""
	}
	want, got = want.withoutGoTypes(), got.withoutGoTypes()
	if diff := cmp.Diff(want, got.as(want)); diff != "" {
		text, _ := json.MarshalIndent(a, "", " ")
		t.Fatalf("%s (-oracle +ours):\n%s\n%s", hooks[0].Policy.Name, diff, text)
	}
	return kind
}

// isAbout reports whether a rule names the resource: enough to tell that an allow means
// something.
func isAbout(p *validating.Policy, a *policyAdmission) bool {
	resource := a.Resource.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	has := func(list []string, one string) bool { return slices.Contains(list, "*") || slices.Contains(list, one) }
	return slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return has(r.APIGroups, a.Resource.Group) && (has(r.Resources, resource) || slices.Contains(r.Resources, "*/*")) &&
			(slices.Contains(r.Operations, "*") || slices.Contains(r.Operations, admissionregistrationv1.OperationType(a.Operation)))
	})
}

// libraryPolicy is a policy as the API server has stored it, and as we have read it.
type libraryPolicy struct {
	file   string
	policy *validating.Policy
	read   manifest.Policy
}

// readLibrary reads every policy below a directory, once each name.
func readLibrary(t *testing.T, dir string) (all []libraryPolicy) {
	t.Helper()
	known := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, doc := range documentsOf(t, data) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal(doc, &kind); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if kind.Kind != "ValidatingAdmissionPolicy" {
				continue
			}
			p := libraryPolicy{file: path, policy: &validating.Policy{}}
			if err := yaml.UnmarshalStrict(doc, p.policy); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if known[p.policy.Name] {
				continue
			}
			known[p.policy.Name] = true
			store(p.policy)
			in := (&manifest.Reader{Sources: []manifest.Source{document{fmt.Sprintf("%s#%d", path, i), doc}}}).Read(t.Context())
			if len(in.Problems) > 0 || len(in.Objects.Policies) != 1 {
				t.Errorf("%s is not read: %v", path, in.Problems)
				continue
			}
			p.read = in.Objects.Policies[0]
			all = append(all, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b libraryPolicy) int { return strings.Compare(a.policy.Name, b.policy.Name) })
	return all
}

func documentsOf(t *testing.T, data []byte) (docs [][]byte) {
	t.Helper()
	for r := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(string(data)))); ; {
		buffer := make([]byte, len(data)+1)
		switch n, err := r.Read(buffer); {
		case errors.Is(err, io.EOF):
			return docs
		case err != nil:
			t.Fatal(err)
		default:
			docs = append(docs, buffer[:n])
		}
	}
}

// document is a Source with one manifest.
type document struct {
	name string
	data []byte
}

func (d document) Name() string { return d.name }

func (d document) Read(context.Context) []manifest.File {
	return []manifest.File{{Name: d.name + ".yaml", Data: d.data}}
}

func (p *libraryPolicy) objects(bindings []*validating.PolicyBinding) *manifest.Objects {
	o := &manifest.Objects{Policies: []manifest.Policy{p.read}}
	for _, b := range bindings {
		o.PolicyBindings = append(o.PolicyBindings, manifest.PolicyBinding{ValidatingAdmissionPolicyBinding: *b, Origin: manifest.Origin{Object: b.Name}})
	}
	return o
}

// store adds the defaults of the API server (kubernetes
// pkg/apis/admissionregistration/v1/defaults.go).
func store(p *validating.Policy) {
	if p.Spec.FailurePolicy == nil {
		p.Spec.FailurePolicy = pointer(admissionregistrationv1.Fail)
	}
	m := p.Spec.MatchConstraints
	if m == nil {
		return
	}
	if m.MatchPolicy == nil {
		m.MatchPolicy = pointer(admissionregistrationv1.Equivalent)
	}
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	if m.ObjectSelector == nil {
		m.ObjectSelector = &metav1.LabelSelector{}
	}
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			if rules[i].Scope == nil {
				rules[i].Scope = pointer(admissionregistrationv1.AllScopes)
			}
		}
	}
}

// bindingsOf are two bindings: one denies and audits, the other warns.
func bindingsOf(p *validating.Policy) (list []*validating.PolicyBinding) {
	for name, actions := range map[string][]admissionregistrationv1.ValidationAction{"deny": {"Deny", "Audit"}, "warn": {"Warn"}} {
		b := &validating.PolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: p.Name + "-" + name}}
		b.Spec.PolicyName, b.Spec.ValidationActions = p.Name, actions
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *validating.PolicyBinding) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// libraryRequests are the requests that every policy decides: each workload as it should
// be and with each of its faults, and the objects of testdata/objects.yaml.
func libraryRequests(t *testing.T) (list []*policyAdmission) {
	t.Helper()
	for _, k := range sample.WorkloadKinds {
		list = append(list, workload(&k, sample.Hardened()))
		for _, f := range sample.Faults {
			p := sample.Hardened()
			f.Spoil(p)
			a := workload(&k, p)
			list = append(list, a, changedWorkload(&k, sample.Hardened(), p), changedWorkload(&k, p, sample.Hardened()))
		}
	}
	data, err := os.ReadFile("testdata/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range documentsOf(t, data) {
		a := admissionOf(t, doc)
		other := *a
		other.Groups = []string{"on-call", "system:masters"}
		list = append(list, a, &other)
	}
	for _, k := range sample.WorkloadKinds {
		a := workload(&k, sample.Hardened())
		a.Operation, a.Old, a.New = admission.Delete, a.New, nil
		list = append(list, a)
	}
	return list
}

// workload is a random workload with up to four faults.
func (g *policySource) workload() *policyAdmission {
	d, k := sample.Dice{Rand: g.Rand}, &sample.WorkloadKinds[g.IntN(len(sample.WorkloadKinds))]
	if g.some(70) {
		return workload(k, sample.Spoiled(d))
	}
	return changedWorkload(k, sample.Spoiled(d), sample.Spoiled(d))
}
