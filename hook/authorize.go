// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

var errNoCaller = errors.New("nothing is known of the cluster")

// Answer has the authorizer of the calling cluster answer what an expression over variables
// has asked. It waits for that, well within the deadline, so whoever calls it holds no turn
// and no lock. An error of the authorizer is what the expression sees. admitted: an
// admission that has a slot waits; it shares the lookups with others, and is shed with a
// *CallError where too many wait.
func (v *View) Answer(variables *celenv.Variables, asked *celenv.Unanswered, deadline time.Time, admitted bool) error {
	if admitted && v.Account != nil {
		done, err := v.Account.LookUp(v.Cluster)
		if err != nil {
			return &CallError{Cause: Shed, Err: err}
		}
		defer done()
	}
	status, err := authorizationv1.SubjectAccessReviewStatus{}, errNoCaller
	if v.Caller != nil {
		status, err = v.Caller.Authorize(&asked.Access, deadline)
	}
	variables.Answer(asked, status, err)
	return nil
}
