// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// rights are an authorizer whose answers are drawn by a number and by everything that it is
// asked. The comparison draws those for our plugins in the same way, so that a question in
// other words has another answer.
type rights uint64

// Authorize implements authorizer.Authorizer.
func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := fnv.New64a()
	fmt.Fprintf(asked, "%d %q %q %q %q %q %q %q %q", uint64(r), a.GetUser().GetName(), a.GetVerb(), a.GetNamespace(), a.GetAPIGroup(),
		a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName())
	switch asked.Sum64() % 6 {
	case 0, 1:
		return authorizer.DecisionAllow, "", nil
	case 2:
		return authorizer.DecisionAllow, "a role", errors.New("another role is missing")
	case 3:
		return authorizer.DecisionDeny, "it is denied", nil
	case 4:
		return authorizer.DecisionNoOpinion, "no role", errors.New("a role is missing")
	}
	return authorizer.DecisionNoOpinion, "", nil
}
