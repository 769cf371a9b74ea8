// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// manyWebhooks returns a configuration "policy" of n webhooks, w0 and so on.
func manyWebhooks(n int) manifest.Configuration {
	c := manifest.Configuration{Origin: manifest.Origin{File: "f", Object: "ValidatingWebhookConfiguration/policy"}, Phase: chain.Validating}
	c.Meta.Name = "policy"
	for i := range n {
		w := admissionregistrationv1.MutatingWebhook{
			Name: fmt.Sprintf("w%d.example.com", i),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
				Name: "policy", Namespace: "policies", Path: new(fmt.Sprintf("/w%d", i)), Port: new(int32(443)),
			}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{fmt.Sprintf("g%d.example.com", i%50)}, APIVersions: []string{"v1"},
					Resources: []string{fmt.Sprintf("r%d", i)}, Scope: new(admissionregistrationv1.AllScopes),
				},
			}},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			NamespaceSelector:       &metav1.LabelSelector{},
			ObjectSelector:          &metav1.LabelSelector{},
			TimeoutSeconds:          new(int32(10)),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "c", Expression: fmt.Sprintf("request.name != 'x%d'", i%20)},
			},
		}
		c.Webhooks = append(c.Webhooks, w)
	}
	return c
}

func clusterNamed(name, env string) manifest.Cluster {
	c := manifest.Cluster{Origin: manifest.Origin{File: "f", Object: "Cluster/" + name}}
	c.Name, c.Labels = name, map[string]string{"env": env, "name": name}
	c.Spec.Authentication.Certificate = &v1alpha1.CertificateIdentity{CommonNames: []string{name}}
	return c
}

// atScale is 1,000 webhooks shared by 100 clusters, each with a binding of its
// own for a third of them.
func atScale() *manifest.Objects {
	o := &manifest.Objects{Configurations: []manifest.Configuration{manyWebhooks(1000)}}
	for i := range 100 {
		name := fmt.Sprintf("c%d", i)
		o.Clusters = append(o.Clusters, clusterNamed(name, "prod"))
		b := manifest.Binding{Origin: manifest.Origin{File: "f", Object: "WebhookBinding/" + name}}
		b.Name = name
		b.Spec.Webhooks = []string{fmt.Sprintf("policy/w%d*", i%9+1), fmt.Sprintf("policy/w?%d*", i%10), "policy/w??5.*"}
		b.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
		b.Spec.Mode = []string{"Enforce", "Warn", "Shadow"}[i%3]
		b.Spec.Timeout = &v1alpha1.Duration{Duration: time.Duration(i+1) * 10 * time.Millisecond}
		o.Bindings = append(o.Bindings, b)
	}
	return o
}

// BenchmarkCompile measures P14: a reload, and what its Snapshot holds.
func BenchmarkCompile(b *testing.B) {
	o, c := atScale(), NewCompiler(Options{})
	var s *Compiled
	before := heap()
	for b.Loop() {
		var problems []manifest.Problem
		if s, problems, _ = c.Compile(manifest.Input{Objects: o}, nil, nil); s == nil {
			b.Fatal(problems[0])
		}
	}
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-held")
	runtime.KeepAlive(s)
	runtime.KeepAlive(o)
}

// BenchmarkDecode measures the other half of a reload: the same configuration as
// one YAML file.
func BenchmarkDecode(b *testing.B) {
	c := manyWebhooks(1000)
	list := admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: c.Webhooks}
	list.APIVersion, list.Kind, list.Name = "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "policy"
	data, err := yaml.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "f.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		reader := manifest.Reader{Sources: manifest.Directories(path)}
		if in := reader.Read(b.Context()); len(in.Problems) > 0 {
			b.Fatal(in.Problems[0])
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
