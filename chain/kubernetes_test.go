// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
)

// versioned is a source that knows a version.
type versioned struct {
	match.Namespaces
	is chain.KubernetesVersion
}

func (v *versioned) KubernetesVersion() chain.KubernetesVersion { return v.is }

// TestVersionOfTheAPI: what the cluster says counts where the manifest says nothing.
func TestVersionOfTheAPI(t *testing.T) {
	source := &versioned{}
	c := chain.Cluster{Namespaces: source}
	if c.ExemptsAuthReviews() {
		t.Error("exempt without a version")
	}
	if source.is = (chain.KubernetesVersion{Major: 1, Minor: 37}); !c.ExemptsAuthReviews() {
		t.Error("not exempt at 1.37")
	}
	if source.is.Minor = 36; c.ExemptsAuthReviews() {
		t.Error("exempt at 1.36")
	}
}

// What the manifest says counts before what the cluster says; a source that knows
// nothing is none.
func TestVersionOfTheManifest(t *testing.T) {
	c := chain.Cluster{Namespaces: &versioned{is: chain.KubernetesVersion{Major: 1, Minor: 30}}}
	if got := c.KubernetesVersion().String(); got != "1.30" {
		t.Errorf("the API says %q", got)
	}
	c.Declared = chain.KubernetesVersion{Major: 1, Minor: 31}
	if got := c.KubernetesVersion().String(); got != "1.31" {
		t.Errorf("the manifest says %q", got)
	}
	for _, source := range []match.Namespaces{nil, struct{ match.Namespaces }{}} {
		if got := (&chain.Cluster{Namespaces: source}).KubernetesVersion().String(); got != "" {
			t.Errorf("nobody says %q", got)
		}
	}
}

func TestParseKubernetesVersion(t *testing.T) {
	for text, want := range map[string]string{
		"1.36": "1.36", "v1.36": "1.36", "v1.36.3": "1.36", "1.36.0-alpha.1": "1.36", "v1.36.3-eks-1": "1.36", "1.36.3+k3s1": "1.36", "1.0": "1.0", "9999.9999": "9999.9999",
		"": "error", "1": "error", "1.": "error", "0.36": "error", "1.036": "error", "1.36.": "error", "1.36-eks": "error", "v1.36.3 ": "error", "10000.1": "error", "V1.36": "error",
	} {
		v, err := chain.ParseKubernetesVersion(text)
		got := v.String()
		if err != nil {
			got += "error"
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	list := []chain.KubernetesVersion{{}, {Major: 1}, {Major: 1, Minor: 9}, {Major: 1, Minor: 36}, {Major: 2}, {Major: 2, Minor: 1}}
	for i, a := range list {
		for j, b := range list {
			if a.Before(b) != (i < j) {
				t.Errorf("%v is before %v: %v", a, b, a.Before(b))
			}
		}
	}
}
