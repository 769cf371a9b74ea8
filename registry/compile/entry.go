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
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// entry is one webhook of a configuration, or one policy with a binding, compiled as
// far as all clusters share it.
type entry struct {
	configuration *manifest.Configuration
	spec          *admissionregistrationv1.MutatingWebhook
	path          *field.Path
	number        uint32 // position among all entries
	pathID        string
	matcher       *match.Matcher
	bindings      []*binding  // that bind it, by name
	bindingNames  []string    // of these; shared by all that is compiled
	restricted    bool        // serves only clusters that one of them selects
	policy        *policyPair // nil: it is a webhook
	place         *place

	merges   map[string]merge      // by the selected ones of bindings; shared by all that have these
	variants map[dispatch]*variant // compiled
}

// entries are the webhooks of all valid configurations.
type entries struct {
	*credentials
	cel      *celenv.Compiler
	params   *params
	kinds    *kinds
	bindings []*binding
	byPhase  [2][]*entry // in configuration and list order
	pathIDs  map[pathKey]*entry
	merges   map[string]map[string]merge // by the names of an entry's bindings
}

// pathKey is what must be unique of a webhook's id.
type pathKey struct {
	phase   chain.Phase
	cluster string // of configurations of one cluster, which are in no chain of another
	id      string
}

func compileEntries(objects *manifest.Objects, params *params, bindings []*binding, files *credentials, k *Compiler) [2][]*entry {
	c := &entries{
		credentials: files, cel: k.cel, params: params, kinds: &k.kinds, bindings: bindings,
		pathIDs: map[pathKey]*entry{}, merges: map[string]map[string]merge{},
	}
	c.compilePolicies(objects, k.policies)
	for i := range objects.Configurations {
		configuration := &objects.Configurations[i]
		if errs := validateConfiguration(configuration, c.condition); len(errs) > 0 {
			c.problem(configuration.Problems(errs)...)
			continue
		}
		for j := range configuration.Webhooks {
			c.compile(configuration, j)
		}
	}
	return c.byPhase
}

// condition compiles an expression by itself, so that a problem has its
// field; the cache makes compiling it again with its webhook free.
func (c *entries) condition(expression string) error {
	return compiles(c.cel, expression)
}

// compiles returns why an expression does not compile, or nil.
func compiles(cel *celenv.Compiler, expression string) error {
	_, err := cel.Compile(expression)
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

func (c *entries) compile(configuration *manifest.Configuration, i int) {
	e := &entry{
		configuration: configuration,
		spec:          &configuration.Webhooks[i],
		path:          configuration.Webhook(i),
	}
	c.problem(configuration.Problems(validateDestination(&e.spec.ClientConfig, c.options.Addresses, e.path.Child("clientConfig")))...)
	if bundle := e.spec.ClientConfig.CABundle; len(bundle) > 0 {
		c.checkCA(configuration.Origin, e.path.Child("clientConfig", "caBundle"), bundle)
	}
	c.add(e)
}

// add adds the entry, with its Matcher and its bindings.
func (c *entries) add(e *entry) {
	e.number = uint32(len(c.byPhase[chain.Validating]) + len(c.byPhase[chain.Mutating]))
	e.variants = map[dispatch]*variant{}
	c.identify(e)
	matcher, err := match.Compile(e.matchSpec(), c.cel)
	if err != nil {
		c.problem(e.configuration.Problem(e.path, "", err.Error()))
		return
	}
	e.matcher = matcher
	for _, b := range c.bindings {
		if b.binds(e.configuration.Name(), e.spec.Name) {
			c.problem(e.bind(b)...)
		}
	}
	bound := strings.Join(e.bindingNames, "/") // which is in no name
	if c.merges[bound] == nil {
		c.merges[bound] = map[string]merge{}
	}
	e.merges = c.merges[bound]
	e.place = &place{Origin: e.configuration.Origin, at: e.path, rules: e.rules(), name: e.name(), number: e.number}
	c.byPhase[e.configuration.Phase] = append(c.byPhase[e.configuration.Phase], e)
}

// identify gives the entry its id, and refuses two webhooks of one phase that the
// segments of Paths could not tell apart. Webhooks of one name are refused elsewhere
// (E7).
func (c *entries) identify(e *entry) {
	e.pathID = chain.PathID(e.name())
	key := pathKey{e.configuration.Phase, e.configuration.Cluster, e.pathID}
	another := c.pathIDs[key]
	if another == nil { // those for all come first
		another = c.pathIDs[pathKey{e.configuration.Phase, "", e.pathID}]
	}
	switch {
	case another == nil:
	case (another.policy == nil) != (e.policy == nil): // policies come first
		c.problem(e.configuration.Problem(e.path.Child("name"), e.spec.Name, "is the name of a "+policyKinds[e.configuration.Phase]+" and its binding, too"))
		return
	case another.name() != e.name():
		c.problem(e.configuration.Problem(e.path.Child("name"), e.spec.Name,
			fmt.Sprintf("has the same short id as webhook %s: rename one of them", another.name())))
		return
	}
	c.pathIDs[key] = e
}

func (e *entry) matchSpec() match.Spec {
	spec := match.Spec{
		Rules:             e.spec.Rules,
		MatchPolicy:       *e.spec.MatchPolicy,
		FailurePolicy:     *e.spec.FailurePolicy,
		NamespaceSelector: e.spec.NamespaceSelector,
		ObjectSelector:    e.spec.ObjectSelector,
		MatchConditions:   e.spec.MatchConditions,
	}
	if e.policy != nil {
		e.policy.restrict(&spec)
	}
	return spec
}

// bind notes a binding, and reports what it may not say of the entry.
func (e *entry) bind(b *binding) (problems []manifest.Problem) {
	e.bindings = append(e.bindings, b)
	e.bindingNames = append(e.bindingNames, b.Name)
	e.restricted = e.restricted || b.Spec.OnlySelectedClusters
	for i, f := range bindingFields {
		if value := b.says[i]; value != nil {
			if reason := f.refuses(e, value); reason != "" {
				problems = append(problems, b.Problem(field.NewPath("spec", f.name), fmt.Sprint(value), reason))
			}
		}
	}
	return problems
}

func (e *entry) timeout() time.Duration { return time.Duration(*e.spec.TimeoutSeconds) * time.Second }

// name is the entry's name as the globs of bindings see it.
func (e *entry) name() string { return e.configuration.Name() + "/" + e.spec.Name }

// selection is which bindings select a group of clusters.
type selection map[*binding]bool

// serves reports whether the webhook takes part in the group's clusters.
func (e *entry) serves(g *group) bool {
	selected := g.selected
	if e.configuration.Cluster != "" && e.configuration.Cluster != g.alone {
		return false
	}
	if e.policy != nil && e.policy.clusters != nil && !selected[e.policy.clusters] {
		return false
	}
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
