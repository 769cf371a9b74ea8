// SPDX-License-Identifier: Apache-2.0

package exempt_test

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
)

// isServiceAccountOf reports whether the user is taken for a service account that
// the entry of a rule means.
func isServiceAccountOf(entry, username string) bool {
	rules := exempt.Compile([]exempt.Rule{{Name: "it", ServiceAccounts: []string{entry}}})
	r := reviewOf(codec.Create, "", "v1", "pods", "", "shop")
	r.User.Username = []byte(username)
	_, ok := rules.Match(r)
	return ok
}

func TestMalformedServiceAccounts(t *testing.T) {
	for _, username := range []string{
		"", "ci:bot", "ci/bot", "system:serviceaccount:", "system:serviceaccount::", "system:serviceaccount::bot",
		"system:serviceaccount:ci", "system:serviceaccount:ci:", "system:serviceaccount:ci:bot:", "system:serviceaccount:ci:bot:x",
		"system:serviceaccount:ci::bot", "system:serviceaccount:ci/bot", "system:serviceaccounts:ci:bot", "System:ServiceAccount:ci:bot",
		" system:serviceaccount:ci:bot", "system:node:ci:bot",
	} {
		t.Run(username, func(t *testing.T) {
			for _, entry := range []string{"ci/*", "ci/bot"} {
				if isServiceAccountOf(entry, username) {
					t.Errorf("taken for a service account of %s", entry)
				}
			}
		})
	}
	t.Run("an asterisk is no wildcard in a user name", func(t *testing.T) {
		if isServiceAccountOf("ci/bot", "system:serviceaccount:ci:*") {
			t.Error("taken for another service account")
		}
	})
}

// TestServiceAccountsAgainstAPIServer holds user names against the API server's
// own reading of them.
func TestServiceAccountsAgainstAPIServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		username := "system:serviceaccount:" + rapid.StringMatching(`[ab:]{0,6}`).Draw(t, "username")
		namespace, name, err := serviceaccount.SplitUsername(username)
		want := err == nil && namespace == "a"
		if got := isServiceAccountOf("a/*", username); got != want {
			t.Fatalf("a/*: got %v, the API server says %v", got, want)
		}
		want = want && name == "b"
		if got := isServiceAccountOf("a/b", username); got != want {
			t.Fatalf("a/b: got %v, the API server says %v", got, want)
		}
	})
}
