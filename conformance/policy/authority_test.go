// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"errors"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// authority decides what both sides ask: who may do what is in the verb, but for what the
// user, the groups, the name and the namespace say.
type authority struct{ chain.Resource }

var errNoRole = errors.New("clusterrole \"missing\" not found")

func (authority) decide(user string, groups []string, verb, what string) (authorizer.Decision, string, error) {
	reason := user + " " + strings.Join(groups, "+") + " " + verb + " " + what
	switch {
	case strings.HasPrefix(verb, "deny"):
		return authorizer.DecisionDeny, reason, nil
	case strings.HasPrefix(verb, "doubt"):
		return authorizer.DecisionNoOpinion, reason, errNoRole
	case strings.HasPrefix(verb, "may"), strings.Contains(what, "web"), strings.HasPrefix(user, "system:serviceaccount:shop:"):
		return authorizer.DecisionAllow, reason, nil
	}
	return authorizer.DecisionNoOpinion, reason, nil
}

// Authorize implements chain.Authorizer, as an API server's SubjectAccessReview does.
func (a authority) Authorize(spec *authorizationv1.SubjectAccessReviewSpec, _ time.Time) (status authorizationv1.SubjectAccessReviewStatus, _ error) {
	var verb, what string
	if r := spec.ResourceAttributes; r != nil {
		verb, what = r.Verb, strings.Join([]string{r.Group, r.Version, r.Resource, r.Subresource, r.Namespace, r.Name}, "/")
	} else {
		verb, what = spec.NonResourceAttributes.Verb, spec.NonResourceAttributes.Path
	}
	decision, reason, err := a.decide(spec.User, spec.Groups, verb, what)
	status.Allowed, status.Denied, status.Reason = decision == authorizer.DecisionAllow, decision == authorizer.DecisionDeny, reason
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status, nil
}

// inCluster is the same authorizer, asked where it is.
type inCluster struct{ authority }

// Authorize implements authorizer.UnconditionalAuthorizer.
func (a inCluster) Authorize(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
	what := of.GetPath()
	if of.IsResourceRequest() {
		what = strings.Join([]string{of.GetAPIGroup(), of.GetAPIVersion(), of.GetResource(), of.GetSubresource(), of.GetNamespace(), of.GetName()}, "/")
	}
	return a.decide(of.GetUser().GetName(), of.GetUser().GetGroups(), of.GetVerb(), what)
}

// check is an expression that asks the authorizer.
func (g *policySource) check() string {
	of := g.one("authorizer", "authorizer", "authorizer.serviceAccount('shop', 'robot')")
	of += g.one(".path('/healthz')", ".group('').resource('pods')", ".group('apps').resource('deployments').subresource('scale')", ".group('').resource('pods').namespace(request.namespace)",
		".group('').resource('pods').name(object.metadata.name)", ".group('').resource('pods').fieldSelector('a=b').labelSelector('c in (d)')")
	if g.some(40) {
		of = "authorizer.requestResource"
	}
	return of + ".check('" + g.one("get", "may-break", "deny", "doubt", "create") + "')"
}

// asked is a condition about what the authorizer says.
func (g *policySource) asked() string {
	return g.one("", "", "!") + g.check() + g.one(".allowed()", ".allowed()", ".errored()", ".reason() != ''", ".error() == ''")
}
