// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// plugged is an object Plugin, compiled.
type plugged struct {
	place
	object   *manifest.Plugin
	clusters labels.Selector
	matcher  *match.Matcher
	instance *plugin.Instance
	entries  [2]*chain.Entry // by Phase; nil: it takes no part
	variants [2]*variant     // of the entries, once a chain has them
	selected int             // clusters
}

// plugins are all objects Plugin that are valid.
type plugins struct {
	*diagnostics
	compiler  *Compiler
	list      []*plugged
	instances map[string]*plugin.Instance // by what the plugin and its configuration are
	pathIDs   map[string]string           // names of webhooks and plugins by their short ids
	next      uint32                      // the number of the next matcher
}

// compilePlugins compiles what objects of kind Plugin, and AdmissionConfigurations, turn on.
func compilePlugins(objects []manifest.Plugin, entries [2][]*entry, d *diagnostics, k *Compiler) *plugins {
	c := &plugins{diagnostics: d, compiler: k, instances: map[string]*plugin.Instance{}, pathIDs: map[string]string{}}
	for _, list := range entries {
		c.next += uint32(len(list))
		for _, e := range list {
			c.pathIDs[e.pathID] = e.name()
		}
	}
	for i := range objects {
		c.compile(&objects[i])
	}
	slices.SortStableFunc(c.list, func(a, b *plugged) int { // those of one plugin stay in the order of their names
		known := k.options.Plugins
		return known[a.object.Spec.Plugin].Compare(known[b.object.Spec.Plugin])
	})
	return c
}

// compile adds a plugin, or reports everything that is wrong with its object.
func (c *plugins) compile(m *manifest.Plugin) {
	p := &plugged{object: m, place: place{Origin: m.Origin, name: m.Name + "/" + m.Spec.Plugin, number: c.next}}
	p.at, p.rules = m.Place()
	before := len(c.problems)
	if m.IsObject() {
		c.problem(m.Problems(validatePlugin(&m.Plugin, func(expression string) error {
			return compiles(c.compiler.cel, expression)
		}))...)
	}
	compiledIn, known := c.compiler.options.Plugins[m.Spec.Plugin]
	switch {
	case m.Spec.Plugin == "":
		return
	case !known:
		c.problem(m.Problem(m.Path("plugin"), m.Spec.Plugin, notCompiledIn(c.compiler.options.Plugins)))
		return
	}
	p.instance = c.instance(m, compiledIn)
	if len(c.problems) > before {
		return
	}
	if another, taken := c.pathIDs[chain.PathID(p.name)]; taken {
		c.problem(m.Problem(field.NewPath("metadata", "name"), m.Name, fmt.Sprintf("has the same short id as %s: rename one of them", another)))
		return
	}
	c.pathIDs[chain.PathID(p.name)] = p.name
	phases, err := p.phases()
	if err != nil {
		c.problem(m.Problem(p.at.Child("phases"), "", err.Error()))
		return
	}
	if p.matcher, err = match.Compile(p.spec(compiledIn), c.compiler.cel); err != nil {
		c.problem(m.Problem(p.at, "", err.Error()))
		return
	}
	for _, phase := range phases {
		p.entries[phase] = p.entry(phase, compiledIn)
	}
	p.clusters = labels.Everything()
	if s := m.Spec.ClusterSelector; s != nil {
		p.clusters, _ = metav1.LabelSelectorAsSelector(s) // validated above
	}
	c.next++
	c.list = append(c.list, p)
}

// notCompiledIn says of a name that it is none of the plugins.
func notCompiledIn(known plugin.Set) string {
	names := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	return "is not compiled in; there are: " + cmp.Or(names, "none")
}

// instance returns the plugin with its configuration: the one that is there already where
// the object says the same of it, so that what it remembers outlives a reload.
func (c *plugins) instance(m *manifest.Plugin, compiledIn plugin.Plugin) *plugin.Instance {
	sum := sha256.Sum256(m.Spec.Configuration)
	key := m.Name + "/" + m.Spec.Plugin + "/" + string(sum[:])
	made := c.compiler.instances[key]
	if made == nil {
		var (
			invalid     field.ErrorList
			undecodable []error
		)
		made, invalid, undecodable = compiledIn.Configure(m.Spec.Configuration, c.compiler.options.Workers)
		c.problem(m.ConfigurationProblems(invalid, undecodable)...)
	}
	c.instances[key] = made
	return made
}

// phases are those in which the plugin takes part, or why it cannot in those that its
// object names.
func (p *plugged) phases() ([]chain.Phase, error) {
	can := map[string]bool{v1alpha1.PhaseMutating: p.instance.Mutates(), v1alpha1.PhaseValidating: p.instance.Validates()}
	named := p.object.Spec.Phases
	var phases []chain.Phase
	for word, phase := range map[string]chain.Phase{v1alpha1.PhaseMutating: chain.Mutating, v1alpha1.PhaseValidating: chain.Validating} {
		switch wanted := slices.Contains(named, word); {
		case wanted && !can[word]:
			return nil, fmt.Errorf("plugin %s takes no part in phase %s", p.object.Spec.Plugin, word)
		case wanted, len(named) == 0 && can[word]:
			phases = append(phases, phase)
		}
	}
	return phases, nil
}

// spec is what the plugin wants, which has rules of its own unless its object says others.
func (p *plugged) spec(compiledIn plugin.Plugin) match.Spec {
	s, rules := &p.object.Spec, compiledIn.Rules
	if len(s.Rules) > 0 {
		rules = s.Rules
	}
	return match.Spec{
		Rules: rules, MatchPolicy: s.MatchPolicy, FailurePolicy: s.FailurePolicy,
		NamespaceSelector: s.NamespaceSelector, ObjectSelector: s.ObjectSelector, MatchConditions: s.MatchConditions,
	}
}

// entry is the plugin in one phase.
func (p *plugged) entry(phase chain.Phase, compiledIn plugin.Plugin) *chain.Entry {
	s := &p.object.Spec
	e := &chain.Entry{
		ID:            hook.ID{Configuration: p.object.Name, Name: s.Plugin},
		Hook:          p.instance.Hook(),
		Noun:          "plugin",
		CompiledIn:    true,
		PathID:        chain.PathID(p.name),
		Matcher:       p.matcher,
		Spec:          p.spec(compiledIn),
		FailurePolicy: failurePolicyOf(s.FailurePolicy),
		SideEffects:   chain.SideEffectsNone,
		Timeout:       defaultPluginTimeout,
		Mode:          chain.Mode(max(0, slices.Index(chain.Modes[:], s.Mode))),
		Stage:         chain.StagePolicy,

		Needs: chain.Needs{NamespaceLabels: compiledIn.NamespaceLabels, Objects: compiledIn.Lists, Authorizer: compiledIn.Authorizes || len(p.matcher.Authorizes()) > 0},
	}
	if s.Timeout != nil {
		e.Timeout = s.Timeout.Duration
	}
	if s.Order != nil {
		e.Order = *s.Order
	}
	if phase == chain.Mutating {
		e.Reinvocation = s.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
	} else {
		e.Stage = stageOf(s.Stage)
	}
	return e
}

// stageOf reads what is validated; "" is the stage before all webhooks.
func stageOf(word string) chain.Stage {
	if i := slices.Index(chain.Stages[:], word); i >= 0 {
		return chain.Stage(i)
	}
	return chain.StagePolicy
}

// plugin returns the variant of a plugin, of which there is one in each phase.
func (v *variants) plugin(p *plugged, phase chain.Phase) *variant {
	if p.variants[phase] == nil {
		p.variants[phase] = &variant{Entry: p.entries[phase], number: v.count}
		v.count++
	}
	return p.variants[phase]
}

const (
	// defaultPluginTimeout is kube-apiserver's default for a webhook.
	defaultPluginTimeout = 10 * time.Second
	minPluginTimeout     = time.Millisecond
)

func validatePlugin(p *v1alpha1.Plugin, cel conditionCompiler) field.ErrorList {
	errs := validation.ValidateObjectMeta(&p.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	at, s := field.NewPath("spec"), &p.Spec
	if s.Plugin == "" {
		errs = append(errs, field.Required(at.Child("plugin"), "the name of a plugin that is compiled in"))
	}
	opts := metav1validation.LabelSelectorValidationOptions{}
	errs = append(errs, metav1validation.ValidateLabelSelector(s.ClusterSelector, opts, at.Child("clusterSelector"))...)
	for i := range s.Phases {
		errs = append(errs, oneOf(at.Child("phases").Index(i), &s.Phases[i], v1alpha1.PhaseMutating, v1alpha1.PhaseValidating)...)
		if slices.Contains(s.Phases[:i], s.Phases[i]) {
			errs = append(errs, field.Duplicate(at.Child("phases").Index(i), s.Phases[i]))
		}
	}
	errs = append(errs, validatePluginDispatch(s, at)...)
	for i := range s.Rules {
		errs = append(errs, validateRule(&s.Rules[i], at.Child("rules").Index(i))...)
	}
	errs = append(errs, oneOf(at.Child("matchPolicy"), &s.MatchPolicy, "Equivalent", "Exact")...)
	errs = append(errs, metav1validation.ValidateLabelSelector(s.NamespaceSelector, opts, at.Child("namespaceSelector"))...)
	errs = append(errs, metav1validation.ValidateLabelSelector(s.ObjectSelector, opts, at.Child("objectSelector"))...)
	return append(errs, validateConditions(s.MatchConditions, cel, at.Child("matchConditions"))...)
}

// validatePluginDispatch checks how a plugin is asked.
func validatePluginDispatch(s *v1alpha1.PluginSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Stage != "" {
		errs = append(errs, oneOf(at.Child("stage"), &s.Stage, append([]string{chain.StagePolicy.String()}, chain.Stages[:]...)...)...)
	}
	if s.Mode != "" {
		errs = append(errs, oneOf(at.Child("mode"), &s.Mode, chain.Modes[:]...)...)
	}
	errs = append(errs, oneOf(at.Child("failurePolicy"), &s.FailurePolicy, "Fail", "Ignore")...)
	if t := s.Timeout; t != nil && (t.Duration < minPluginTimeout || t.Duration > chain.MaxTimeout) {
		errs = append(errs, field.Invalid(at.Child("timeout"), t.Duration.String(), fmt.Sprintf("must be between %s and %s", minPluginTimeout, chain.MaxTimeout)))
	}
	return append(errs, oneOf(at.Child("reinvocationPolicy"), &s.ReinvocationPolicy, "IfNeeded", "Never")...)
}
