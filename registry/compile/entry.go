// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// entry is one webhook of a configuration, compiled as far as all clusters
// share it.
type entry struct {
	configuration *manifest.Configuration
	spec          *admissionregistrationv1.MutatingWebhook
	path          *field.Path
	number        uint32 // position among all entries
	pathID        string
	matcher       *match.Matcher
	bindings      []*binding // that bind it, by name
	bindingNames  []string   // of these; shared by all that is compiled
	restricted    bool       // serves only clusters that one of them selects

	merges   map[string]merge      // by the selected ones of bindings
	webhooks map[dispatch]*variant // compiled
	served   []served
}

// served is a group of clusters with the webhook as it is for them.
type served struct {
	group   *group
	webhook *chain.Entry
}

// compileConfigurations compiles the webhooks of every valid configuration.
func (c *compiler) compileConfigurations() {
	for i := range c.objects.Configurations {
		configuration := &c.objects.Configurations[i]
		errs := validateConfiguration(configuration, c.compileCondition)
		if len(errs) > 0 {
			c.problem(configuration.Problems(errs)...)
			continue
		}
		for j := range configuration.Webhooks {
			c.compileEntry(configuration, j)
		}
	}
}

// compileCondition compiles an expression by itself, so that a problem has its
// field; the cache makes compiling it again with its webhook free.
func (c *compiler) compileCondition(expression string) error {
	_, err := c.cel.Compile(expression)
	if err == nil {
		return nil
	}
	return errors.New(withoutPicture(err.Error()))
}

// withoutPicture drops the lines in which CEL draws the expression: a Problem is
// one line and shows the expression already.
func withoutPicture(message string) string {
	var kept []string
	for line := range strings.Lines(message) {
		if !strings.HasPrefix(line, " | ") {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	return strings.Join(kept, "; ")
}

func (c *compiler) compileEntry(configuration *manifest.Configuration, i int) {
	e := &entry{
		configuration: configuration,
		spec:          &configuration.Webhooks[i],
		path:          field.NewPath("webhooks").Index(i),
		number:        uint32(len(c.entries[chain.Validating]) + len(c.entries[chain.Mutating])),
		merges:        map[string]merge{},
		webhooks:      map[dispatch]*variant{},
	}
	c.problem(configuration.Problems(validateDestination(&e.spec.ClientConfig, c.Addresses, e.path.Child("clientConfig")))...)
	if bundle := e.spec.ClientConfig.CABundle; len(bundle) > 0 {
		c.checkCA(configuration.Origin, e.path.Child("clientConfig", "caBundle"), bundle)
	}
	c.identify(e)
	matcher, err := match.Compile(e.matchSpec(), c.cel)
	if err != nil {
		c.problem(configuration.Problem(e.path, "", err.Error()))
		return
	}
	e.matcher = matcher
	c.bind(e)
	c.entries[configuration.Phase] = append(c.entries[configuration.Phase], e)
}

// identify gives the entry its id, and refuses two webhooks of one phase that the
// segments of Paths could not tell apart. Webhooks of one name are refused elsewhere
// (E7).
func (c *compiler) identify(e *entry) {
	e.pathID = chain.PathID(e.name())
	key := pathKey{e.configuration.Phase, e.pathID}
	if another := c.pathIDs[key]; another != nil && another.name() != e.name() {
		c.problem(e.configuration.Problem(e.path.Child("name"), e.spec.Name,
			fmt.Sprintf("has the same short id as webhook %s: rename one of them", another.name())))
		return
	}
	c.pathIDs[key] = e
}

// pathKey is what must be unique of a webhook's id.
type pathKey struct {
	phase chain.Phase
	id    string
}

func (e *entry) matchSpec() match.Spec {
	return match.Spec{
		Rules:             e.spec.Rules,
		MatchPolicy:       *e.spec.MatchPolicy,
		FailurePolicy:     *e.spec.FailurePolicy,
		NamespaceSelector: e.spec.NamespaceSelector,
		ObjectSelector:    e.spec.ObjectSelector,
		MatchConditions:   e.spec.MatchConditions,
	}
}

// bind finds the entry's bindings and checks what they may say of it.
func (c *compiler) bind(e *entry) {
	for _, b := range c.bindings {
		if !b.binds(e.configuration.Meta.Name, e.spec.Name) {
			continue
		}
		e.bindings = append(e.bindings, b)
		e.bindingNames = append(e.bindingNames, b.Name)
		e.restricted = e.restricted || b.Spec.OnlySelectedClusters
		for i, f := range bindingFields {
			if value := b.says[i]; value != nil {
				if reason := f.refuses(e, value); reason != "" {
					c.problem(b.Problem(field.NewPath("spec", f.name), fmt.Sprint(value), reason))
				}
			}
		}
	}
}

func (e *entry) timeout() time.Duration { return time.Duration(*e.spec.TimeoutSeconds) * time.Second }

// name is the entry's name as the globs of bindings see it.
func (e *entry) name() string { return e.configuration.Meta.Name + "/" + e.spec.Name }

// selection is which bindings select a group of clusters.
type selection map[*binding]bool

// serves reports whether the webhook takes part where the selected bindings
// hold.
func (e *entry) serves(selected selection) bool {
	return !e.restricted || slices.ContainsFunc(e.bindings, func(b *binding) bool {
		return b.Spec.OnlySelectedClusters && selected[b]
	})
}

// merge puts the selected ones of the entry's bindings together.
func (e *entry) merge(selected selection) merge {
	key := make([]byte, len(e.bindings))
	var chosen []*binding
	for i, b := range e.bindings {
		if selected[b] {
			key[i] = 1
			chosen = append(chosen, b)
		}
	}
	m, ok := e.merges[string(key)]
	if !ok {
		m = mergeBindings(chosen)
		e.merges[string(key)] = m
	}
	return m
}
