// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// judge is a cluster whose authorizer answers so, and who counts lookups.
type judge struct {
	hook.Caller // for what is not asked

	status    authorizationv1.SubjectAccessReviewStatus
	err, busy error
	did       []string
	deadline  time.Time
}

func (j *judge) Authorize(access *authorizationv1.SubjectAccessReviewSpec, deadline time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	j.did, j.deadline = append(j.did, access.User+" "+access.ResourceAttributes.Verb), deadline
	return j.status, j.err
}

func (j *judge) LookUp(cluster string) (done func(), err error) {
	j.did = append(j.did, "look up in "+cluster)
	return func() { j.did = append(j.did, "done") }, j.busy
}

func (j *judge) Turn(string, int, time.Time) (done func(), err error) { return func() {}, nil }
func (j *judge) Hold(string, *codec.Body, bool) error                 { return nil }

// J5 What an expression asks the authorizer it is told, also that there is no answer. An
// admission looks up among its cluster's lookups while it waits, and no longer; where too
// many wait it has no answer.
func TestJ5Answer(t *testing.T) {
	condition, err := celenv.NewCompiler().Compile("authorizer.group('').resource('pods').check('get').allowed()")
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Hour)
	allowed := authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	for name, row := range map[string]struct {
		judge             *judge
		admitted, account bool
		holds, shed       bool
		did               []string
	}{
		"an admission":             {&judge{status: allowed}, true, true, true, false, []string{"look up in east", "ann get", "done"}},
		"one that is denied":       {&judge{}, true, true, false, false, []string{"look up in east", "ann get", "done"}},
		"the API is away":          {&judge{status: allowed, err: errors.New("away")}, true, true, false, false, []string{"look up in east", "ann get", "done"}},
		"too many wait":            {&judge{status: allowed, busy: errors.New("busy")}, true, true, false, true, []string{"look up in east"}},
		"nobody waits for it":      {&judge{status: allowed}, false, true, true, false, []string{"ann get"}},
		"nobody shares":            {&judge{status: allowed}, true, false, true, false, []string{"ann get"}},
		"nothing is known of them": {nil, true, false, false, false, nil},
	} {
		v := podView(t, nil)
		if row.account {
			v.Account = row.judge
		}
		if row.judge != nil {
			v.Caller = row.judge
		}
		_, _, err := condition.Evaluate(v.Variables(), celenv.Budget, time.Time{})
		wanted, ok := errors.AsType[*celenv.Unanswered](err)
		if !ok {
			t.Fatal(err)
		}
		err = v.Answer(v.Variables(), wanted, deadline, row.admitted)
		if call, ok := errors.AsType[*hook.CallError](err); ok != row.shed || ok && call.Cause != hook.Shed || !ok && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !row.shed {
			if holds, _, err := condition.Evaluate(v.Variables(), celenv.Budget, time.Time{}); holds != row.holds || err != nil {
				t.Errorf("%s: it holds: %t, %v", name, holds, err)
			}
		}
		if j := row.judge; j != nil && (!slices.Equal(j.did, row.did) || !row.shed && !j.deadline.Equal(deadline)) {
			t.Errorf("%s: %q until %v", name, j.did, j.deadline)
		}
		v.Release()
	}
}
