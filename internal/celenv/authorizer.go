// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Unanswered is the error of an evaluation that needs an answer of the calling cluster's
// authorizer. No expression waits for one, with what it holds: who evaluates asks, hands
// the answer to Variables.Answer, and evaluates again. The answers to one review are asked
// for once each.
type Unanswered struct {
	Access authorizationv1.SubjectAccessReviewSpec // read only
	key    string
}

// Error says what is asked.
func (u *Unanswered) Error() string {
	var what strings.Builder
	fmt.Fprintf(&what, "it depends on the cluster's authorizer, which was not asked: whether %q may ", u.Access.User)
	switch r, path := u.Access.ResourceAttributes, u.Access.NonResourceAttributes; {
	case path != nil:
		fmt.Fprintf(&what, "%s %s", path.Verb, path.Path)
	case r != nil:
		fmt.Fprintf(&what, "%s %s", r.Verb, schema.GroupResource{Group: r.Group, Resource: r.Resource})
		if r.Subresource != "" {
			what.WriteString("/" + r.Subresource)
		}
		if r.Name != "" {
			fmt.Fprintf(&what, " %q", r.Name)
		}
		if r.Namespace != "" {
			fmt.Fprintf(&what, " in namespace %q", r.Namespace)
		}
	}
	return what.String()
}

// accesses is what expressions have asked about one review.
type accesses struct {
	authorizer, requestResource ref.Val
	answers                     map[string]accessAnswer
	wanted                      *Unanswered // by the evaluation under way, the first that is not known
}

type accessAnswer struct {
	decision authorizer.Decision
	reason   string
	err      error
}

// Answer makes the answer to u, or the error in its place, what expressions see from now on.
func (v *Variables) Answer(u *Unanswered, status authorizationv1.SubjectAccessReviewStatus, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.accesses().answers[u.key] = answerOf(status, err)
}

// answerOf is what the cluster's authorizer has decided, as far as its answer tells.
func answerOf(status authorizationv1.SubjectAccessReviewStatus, err error) accessAnswer {
	a := accessAnswer{decision: authorizer.DecisionNoOpinion, reason: status.Reason}
	if status.EvaluationError != "" {
		a.err = errors.New(status.EvaluationError)
	}
	switch {
	case err != nil:
		a.reason, a.err = "", err
	case status.Denied:
		a.decision = authorizer.DecisionDeny
	case status.Allowed:
		a.decision = authorizer.DecisionAllow
	}
	return a
}

// unanswered returns what the evaluation that has ended would need, once.
func (v *Variables) unanswered() *Unanswered {
	if v.access == nil {
		return nil
	}
	wanted := v.access.wanted
	v.access.wanted = nil
	return wanted
}

// inherit returns the answers for the variables of a later generation of the review.
func (a *accesses) inherit() *accesses {
	if a == nil {
		return nil
	}
	return &accesses{answers: maps.Clone(a.answers)}
}

func (v *Variables) accesses() *accesses {
	if v.access == nil {
		v.access = &accesses{answers: map[string]accessAnswer{}}
	}
	return v.access
}

// authorizerValue is authorizer, whose user is who sent the request.
func (v *Variables) authorizerValue() ref.Val {
	return once(&v.accesses().authorizer, func() ref.Val { return library.NewAuthorizerVal(userOf(v.Review), asking{v}) })
}

// requestResourceValue is authorizer.requestResource: the resource as it was sent.
func (v *Variables) requestResourceValue() ref.Val {
	return once(&v.accesses().requestResource, func() ref.Val {
		return library.NewResourceAuthorizerVal(userOf(v.Review), asking{v}, sentResource{v.Review})
	})
}

// userOf is a copy.
func userOf(r *codec.Review) user.Info {
	var c copier
	u := c.userInfo(&r.User)
	info := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = make(map[string][]string, len(u.Extra))
		}
		info.Extra[key] = values
	}
	return info
}

// sentResource is library.Resource.
type sentResource struct{ *codec.Review }

func (r sentResource) GetName() string      { return string(r.Name) }
func (r sentResource) GetNamespace() string { return string(r.Namespace) }
func (r sentResource) GetResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: string(r.RequestResource.Group), Version: string(r.RequestResource.Version), Resource: string(r.RequestResource.Resource),
	}
}
func (r sentResource) GetSubresource() string { return string(r.RequestSubResource) }

// asking is the authorizer of expressions: what is not known yet it notes.
type asking struct{ *Variables }

var errUnanswered = errors.New("the cluster's authorizer was not asked")

// Authorize implements authorizer.UnconditionalAuthorizer.
func (v asking) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	access := accessOf(attributes)
	text, err := json.Marshal(&access)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if known, ok := v.access.answers[string(text)]; ok {
		return known.decision, known.reason, known.err
	}
	if v.access.wanted == nil {
		v.access.wanted = &Unanswered{access, string(text)}
	}
	return authorizer.DecisionNoOpinion, "", errUnanswered
}

// accessOf is what kube-apiserver's webhook authorizer sends
// (k8s.io/apiserver/plugin/pkg/authorizer/webhook).
func accessOf(a authorizer.Attributes) authorizationv1.SubjectAccessReviewSpec {
	of := a.GetUser()
	spec := authorizationv1.SubjectAccessReviewSpec{User: of.GetName(), UID: of.GetUID(), Groups: of.GetGroups()}
	for key, values := range of.GetExtra() {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[key] = values
	}
	if !a.IsResourceRequest() {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
		Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
	}
	if list := fieldRequirements(a); len(list) > 0 {
		spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: list}
	}
	if list := labelRequirements(a); len(list) > 0 {
		spec.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: list}
	}
	return spec
}

// fieldRequirements leaves out what cannot be said, and is empty for a selector that does
// not parse: requirements narrow what is asked for, so the answer is to more than that.
func fieldRequirements(a authorizer.Attributes) (list []metav1.FieldSelectorRequirement) {
	requirements, _ := a.GetFieldSelector()
	for _, r := range requirements {
		said := metav1.FieldSelectorRequirement{Key: r.Field, Values: []string{r.Value}}
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			said.Operator = metav1.FieldSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			said.Operator = metav1.FieldSelectorOpNotIn
		default:
			continue
		}
		list = append(list, said)
	}
	return list
}

func labelRequirements(a authorizer.Attributes) (list []metav1.LabelSelectorRequirement) {
	requirements, _ := a.GetLabelSelector()
	for _, r := range requirements {
		said := metav1.LabelSelectorRequirement{Key: r.Key(), Values: r.ValuesUnsorted()}
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			said.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			said.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			said.Operator, said.Values = metav1.LabelSelectorOpExists, nil
		case selection.DoesNotExist:
			said.Operator, said.Values = metav1.LabelSelectorOpDoesNotExist, nil
		default:
			continue
		}
		list = append(list, said)
	}
	return list
}

// authorizerVariables are those that an environment lacks to compile an expression that
// asks the authorizer.
func authorizerVariables() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable(plugin.AuthorizerVarName, library.AuthorizerType),
		cel.Variable(plugin.RequestResourceAuthorizerVarName, library.ResourceCheckType),
	}
}
