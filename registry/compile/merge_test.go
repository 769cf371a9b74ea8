// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"path"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// TestBindingsAgainstPairs compiles drawn bindings and compares every webhook in
// every cluster with what its pair of names alone says: compiling shares as much
// as it can, and must not show it.
func TestBindingsAgainstPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObjects(t)
		s, problems, _ := NewCompiler(Options{}).Compile(manifest.Input{Objects: o}, nil, nil)
		disagree := false
		for _, cluster := range o.Clusters {
			for _, w := range o.Configurations[0].Webhooks {
				want, conflict := pair(o, cluster.Labels["env"], w.Name)
				disagree = disagree || conflict
				if s == nil {
					continue
				}
				if got := asPair(s.Clusters[cluster.Name], w.Name); got != want {
					t.Fatalf("%s in %s: %+v, want %+v", w.Name, cluster.Name, got, want)
				}
			}
		}
		if disagree != (s == nil) {
			t.Fatalf("disagree %t, problems %v", disagree, problems)
		}
	})
}

// paired is what is compared of a webhook in a cluster.
type paired struct {
	serves  bool
	mode    string
	timeout time.Duration
}

// pair reads the bindings for one webhook and cluster, the slow and plain way.
func pair(o *manifest.Objects, env, name string) (p paired, conflict bool) {
	p = paired{mode: "Enforce", timeout: 10 * time.Second}
	restricted, mode, timeout := false, "", time.Duration(0)
	for _, b := range o.Bindings {
		if ok, _ := path.Match(b.Spec.Webhooks[0], "policy/"+name); !ok {
			continue
		}
		selects := b.Spec.ClusterSelector == nil || b.Spec.ClusterSelector.MatchLabels["env"] == env
		restricted = restricted || b.Spec.OnlySelectedClusters
		p.serves = p.serves || (b.Spec.OnlySelectedClusters && selects)
		if selects && b.Spec.Mode != "" {
			conflict = conflict || (mode != "" && mode != b.Spec.Mode)
			mode = b.Spec.Mode
		}
		if selects && b.Spec.Timeout != nil {
			conflict = conflict || (timeout != 0 && timeout != b.Spec.Timeout.Duration)
			timeout = b.Spec.Timeout.Duration
		}
	}
	p.serves = p.serves || !restricted
	if !p.serves {
		return paired{}, false
	}
	if mode != "" {
		p.mode = mode
	}
	if timeout != 0 {
		p.timeout = timeout
	}
	return p, conflict
}

func asPair(c *chain.Cluster, name string) paired {
	for _, w := range c.Validating.Webhooks {
		if w.Name == name {
			return paired{true, w.Mode.String(), w.Timeout}
		}
	}
	return paired{}
}

func drawObjects(t *rapid.T) *manifest.Objects {
	o := &manifest.Objects{Configurations: []manifest.Configuration{manyWebhooks(3)}}
	for i, env := range rapid.SliceOfN(rapid.SampledFrom([]string{"dev", "prod", "test"}), 1, 5).Draw(t, "clusters") {
		o.Clusters = append(o.Clusters, clusterNamed(fmt.Sprintf("c%d", i), env))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "bindings") {
		o.Bindings = append(o.Bindings, drawBinding(t, i))
	}
	return o
}

func drawBinding(t *rapid.T, i int) manifest.Binding {
	b := manifest.Binding{Origin: manifest.Origin{File: "f", Object: fmt.Sprintf("WebhookBinding/b%d", i)}}
	b.Name = fmt.Sprintf("b%d", i)
	b.Spec.Webhooks = []string{rapid.SampledFrom([]string{"*/*", "policy/w0.*", "policy/w[12].*", "other/*"}).Draw(t, "glob")}
	b.Spec.OnlySelectedClusters = rapid.Bool().Draw(t, "only")
	b.Spec.Mode = rapid.SampledFrom([]string{"", "", "Warn", "Shadow"}).Draw(t, "mode")
	if env := rapid.SampledFrom([]string{"", "dev", "prod"}).Draw(t, "env"); env != "" {
		b.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
	}
	if seconds := rapid.IntRange(0, 2).Draw(t, "timeout"); seconds > 0 {
		b.Spec.Timeout = &v1alpha1.Duration{Duration: time.Duration(seconds) * time.Second}
	}
	return b
}
