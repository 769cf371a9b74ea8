// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
)

// stored knows the labels of one namespace, and can be asked for another.
type stored struct{ asked []time.Time }

func (s *stored) NamespaceLabels(name string) (map[string]string, error) {
	switch name {
	case "known":
		return map[string]string{"a": "known"}, nil
	case "new":
		return nil, match.ErrNotLookedUp
	}
	return nil, match.ErrNoNamespace
}

func (s *stored) LookUpNamespace(name string, deadline time.Time) (map[string]string, error) {
	s.asked = append(s.asked, deadline)
	return map[string]string{"a": name}, nil
}

// What a Hook asks of namespaces the cluster's source answers, looked up if need be.
func TestStoredLabels(t *testing.T) {
	source, deadline := &stored{}, time.Now().Add(time.Second)
	c := &chain.Cluster{Namespaces: source}
	for name, want := range map[string]string{"known": "known", "new": "new", "none": ""} {
		labels, err := c.StoredLabels(name, deadline)
		if labels["a"] != want || (err == nil) != (want != "") || want == "" && !errors.Is(err, match.ErrNoNamespace) {
			t.Errorf("%s: %v, %v", name, labels, err)
		}
	}
	if !slices.Equal(source.asked, []time.Time{deadline}) {
		t.Errorf("it is looked up by %v", source.asked)
	}
	if labels, err := (&chain.Cluster{}).StoredLabels("known", deadline); labels != nil || err == nil {
		t.Errorf("without a source: %v, %v", labels, err)
	}
}

// The version is that of the Cluster.
func TestVersionOfCaller(t *testing.T) {
	if major, minor := (&chain.Cluster{Declared: chain.KubernetesVersion{Major: 1, Minor: 36}}).Version(); major != 1 || minor != 36 {
		t.Errorf("it is %d.%d", major, minor)
	}
}

// The labels that Hooks read are among those that a source must keep.
func TestLabelsOfHooks(t *testing.T) {
	matcher, err := match.Compile(match.Spec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := (&chain.Chain{}).With([]*chain.Entry{{Matcher: matcher, Needs: chain.Needs{NamespaceLabels: []string{"a", "b"}}}})
	keys := map[string]bool{}
	(&chain.Cluster{Validating: list, Mutating: &chain.Chain{}}).SelectedLabels(keys)
	if len(keys) != 2 || !keys["a"] || !keys["b"] {
		t.Errorf("they are %v", keys)
	}
}
