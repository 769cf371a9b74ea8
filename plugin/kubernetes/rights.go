// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// access is what the cluster's authorizer says of a request, as kube-apiserver's plugins
// word it: the reason, and an error that did not keep it from deciding.
type access struct {
	allowed bool
	reason  string
	err     error
}

// mayUser asks whether the user who makes the request may do that. An error says that the
// authorizer has not answered.
func mayUser(a *plugin.Attributes, do *authorizationv1.ResourceAttributes) (access, error) {
	u := a.User()
	spec := &authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: do, User: u.Username, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if spec.Extra == nil {
			spec.Extra = make(map[string]authorizationv1.ExtraValue, len(u.Extra))
		}
		spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	status, err := a.Authorize(spec)
	if err != nil {
		return access{}, err
	}
	answer := access{allowed: status.Allowed, reason: status.Reason}
	if status.EvaluationError != "" {
		answer.err = errors.New(status.EvaluationError)
	}
	return answer, nil
}

// mayUseSigner asks whether the user may do something with a signer of certificates: by its
// name, or with all signers of its domain. If one of the two is allowed it does not matter
// that the other one has no answer. As in kube-apiserver's plugins an allow beside an error is
// none here.
func mayUseSigner(a *plugin.Attributes, verb, signer string) (bool, error) {
	domain, _, _ := strings.Cut(signer, "/")
	var failed error
	for _, name := range []string{signer, domain + "/*"} {
		answer, err := mayUser(a, &authorizationv1.ResourceAttributes{
			Verb: verb, Group: "certificates.k8s.io", Version: "*", Resource: "signers", Name: name,
		})
		if answer.allowed && answer.err == nil {
			return true, nil
		}
		if err != nil {
			failed = err
		}
	}
	return false, failed
}
