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
