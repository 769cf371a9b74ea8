// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// clusterName is that of the Cluster which the file is loaded beside.
const clusterName = "one"

// given is a Source of one Cluster, whose namespaces are those of webhooks.
type given map[string]map[string]string

// Name implements manifest.Source.
func (given) Name() string { return "cluster" }

// Read implements manifest.Source.
func (g given) Read(context.Context) []manifest.File {
	spec := map[string]any{"authentication": map[string]any{"anonymous": true}}
	if g != nil {
		spec["namespaces"] = map[string]any{"labels": map[string]map[string]string(g)}
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "dispatcher.dev/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": clusterName}, "spec": spec,
	})
	return []manifest.File{{Name: "cluster.json", Data: data, Err: err}}
}

// skippedCount finds how many objects a warning says are skipped.
var skippedCount = regexp.MustCompile(`^skipped: ([0-9]+) object`)

func rowOf(file string) (r row, err error) {
	reader := manifest.Reader{Sources: []manifest.Source{manifest.Directory(file)}}
	in := reader.Read(context.Background())
	namespaces := given{}
	for i := range in.Objects.Configurations {
		c := &in.Objects.Configurations[i]
		for j := range c.Webhooks {
			w := &c.Webhooks[j]
			r.webhooks++
			if len(w.ClientConfig.CABundle) > 0 {
				r.bundled++
			}
			namespaces[namespaceOf(c.Meta.Name, w.Name)] = required(w.NamespaceSelector)
		}
	}
	for _, w := range in.Warnings {
		if found := skippedCount.FindStringSubmatch(w.Reason); found != nil {
			n, _ := strconv.Atoi(found[1])
			r.skipped += n
		}
	}
	_, problems, _ := registry.Validate(settings(file, nil))
	if len(problems) > len(in.Problems) {
		r.alone = "refused: " + problems[0].Reason
	}
	compiled, problems, _ := registry.Validate(settings(file, namespaces))
	r.problems = len(problems)
	for _, p := range problems {
		r.said = append(r.said, p.String())
	}
	if compiled != nil {
		r.reached, err = reached(compiled)
	}
	return r, err
}

func settings(file string, namespaces given) registry.Settings {
	return registry.Settings{Sources: []manifest.Source{manifest.Directory(file), namespaces}, AllowEmpty: true}
}

// namespaceOf names the namespace in which a webhook is asked.
func namespaceOf(configuration, webhook string) string {
	return "ns-" + chain.PathID(configuration+"/"+webhook)
}

// required returns labels that the selector selects, where some do.
func required(s *metav1.LabelSelector) map[string]string {
	labels := map[string]string{}
	if s == nil {
		return labels
	}
	for key, value := range s.MatchLabels {
		labels[key] = value
	}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			labels[e.Key] = e.Values[0]
		case metav1.LabelSelectorOpExists:
			labels[e.Key] = "some"
		case metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist:
		}
	}
	return labels
}

// reached returns how many webhooks are called by a request that one of their rules selects.
func reached(compiled *compile.Compiled) (n int, err error) {
	cluster := compiled.Clusters[clusterName]
	for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
		for _, e := range cluster.Chain(phase).Webhooks {
			called := false
			for i := range e.Spec.Rules {
				if called, err = calls(cluster, phase, e, &e.Spec.Rules[i]); called || err != nil {
					break
				}
			}
			if err != nil {
				return n, err
			}
			if called {
				n++
			}
		}
	}
	return n, nil
}

// calls reports whether the webhook is called by a request of the rule.
func calls(cluster *chain.Cluster, phase chain.Phase, e *chain.Entry, rule *admissionregistrationv1.RuleWithOperations) (bool, error) {
	data, err := json.Marshal(reviewOf(e, rule))
	if err != nil {
		return false, err
	}
	review := codec.AcquireReview()
	defer codec.ReleaseReview(review)
	body := codec.NewBody(data, nil)
	defer body.Release()
	if err := review.Decode(body); err != nil {
		return false, fmt.Errorf("a review of webhook %s: %w", e.Name, err)
	}
	explained := dispatcher.Explain(review, cluster, phase)
	return slices.ContainsFunc(explained.Webhooks, func(w dispatcher.WebhookExplained) bool {
		return w.Called && w.Configuration == e.Configuration && w.Webhook == e.Name
	}), nil
}
