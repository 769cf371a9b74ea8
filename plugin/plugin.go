// SPDX-License-Identifier: Apache-2.0

// Package plugin is for admission plugins that are compiled into a dispatcher: a plugin has
// a name and a configuration, and answers for one review at a time. Objects of kind Plugin
// in a source say which plugins are on, for which clusters, in which order and with which
// configuration; modes, failure policies, deadlines and telemetry are those of webhooks.
package plugin

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// Plugin is one plugin, as it is compiled in. Make one with New.
type Plugin struct {
	Name string
	// Rules are what it is about, where an object Plugin does not say it.
	Rules []admissionregistrationv1.RuleWithOperations

	// NamespaceLabels are the labels of namespaces that it reads (Attributes.NamespaceLabels).
	// A cluster that supplies none is refused for it.
	NamespaceLabels []string
	// Lists are the resources whose stored objects it reads (Get, List).
	Lists []schema.GroupVersionResource
	// Authorizes: it asks the cluster's authorizer (Attributes.Authorize).
	Authorizes bool

	place     int // among all that are compiled in
	configure func(raw []byte) (controller any, invalid field.ErrorList, undecodable []error)
}

// New returns a plugin whose configuration is a C. With each configuration make is given
// one, decoded strictly; without any it is the zero C. What it returns is a Mutator, a
// Validator, or both; the errors have paths below the configuration.
//
// make is pure: "dispatcher validate" and "dispatcher explain" call it too. What it returns
// answers for all clusters, at once, and lives until its configuration changes.
func New[C any](name string, rules []admissionregistrationv1.RuleWithOperations, make func(configuration *C) (any, field.ErrorList)) Plugin {
	return Plugin{Name: name, Rules: rules, configure: func(raw []byte) (any, field.ErrorList, []error) {
		configuration := new(C)
		if len(raw) > 0 {
			strict, err := json.UnmarshalStrict(raw, configuration)
			if err != nil {
				return nil, nil, []error{err}
			}
			if len(strict) > 0 {
				return nil, nil, strict
			}
		}
		controller, invalid := make(configuration)
		return controller, invalid, nil
	}}
}

// Validator decides about a review in the validating phase. The error says that it has no
// answer: then the failure policy decides. ctx ends at the deadline.
type Validator interface {
	Validate(ctx context.Context, a *Attributes) (Answer, error)
}

// Mutator decides about a review in the mutating phase, and may change the object.
type Mutator interface {
	Mutate(ctx context.Context, a *Attributes) (Answer, error)
}

// Undoer is a Validator of the stage Transactional that can take back what Validate did.
type Undoer interface {
	// Undo takes back what Validate did about the review, if anything: it was denied, was a
	// dry run, or its allow was not delivered. It is called at most once, perhaps before
	// Validate has returned. ctx ends after 3 s. hook.Undoer says what delivered means.
	Undo(ctx context.Context, a *Attributes)
}

// Answer is what a plugin says. The zero Answer allows.
type Answer struct {
	// Denied is why the request is denied; nil: it is allowed.
	Denied *metav1.Status
	// Patch changes the object; of a Mutator only.
	Patch []Operation
	// Warnings are for who made the request, a line each.
	Warnings []string
	// Annotations are for the audit log. The name of the plugin is put in front of each
	// key, which may have letters, digits, '-', '_' and '.'.
	Annotations map[string]string
}

// namePattern is what a plugin may be called: never what a webhook may be, which has dots.
var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62}$`)

// Set is plugins by their names.
type Set map[string]Plugin

// NewSet returns the plugins by their names, each of which is there once. The list is in the
// order in which plugins are asked where objects say nothing else. An error is a mistake of
// who compiles them in.
func NewSet(list ...Plugin) (Set, error) {
	set := make(Set, len(list))
	for i, p := range list {
		switch {
		case !namePattern.MatchString(p.Name):
			return nil, fmt.Errorf("plugin %q: a name has up to 63 letters and digits, and begins with a letter", p.Name)
		case p.configure == nil:
			return nil, fmt.Errorf("plugin %s was not made by plugin.New", p.Name)
		case set[p.Name].configure != nil:
			return nil, fmt.Errorf("there are two plugins of the name %s", p.Name)
		}
		p.place = i
		set[p.Name] = p
	}
	return set, nil
}

// Compare orders plugins as their list has them.
func (p Plugin) Compare(q Plugin) int { return cmp.Compare(p.place, q.place) }

// Rule is what most plugins are about: some operations on some resources of one group and
// version.
func Rule(group, version string, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: new(admissionregistrationv1.AllScopes),
		},
	}
}
