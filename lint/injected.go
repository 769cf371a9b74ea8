// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// unverifiable is W10: a Service reference without the authority of its certificate. No
// public authority signs the name of a Service.
func (l *linter) unverifiable() {
	l.each(func(w *webhook) {
		if w.ClientConfig.Service == nil || len(w.ClientConfig.CABundle) > 0 || l.Trusted[w.of.Name+"/"+w.Name] {
			return
		}
		text := "is empty, and the webhook is a Service: only the system's authorities are trusted, and none of them signs the name of a Service, so every call fails"
		if by := injector(w.of.Annotations); by != "" {
			text += fmt.Sprintf(" until %s has filled it in, which it does in its own cluster only", by)
		}
		l.report(w, Warning, w.at.Child("clientConfig", "caBundle"), "", text)
	})
}

// injector names who fills in caBundle at run time, as far as annotations tell.
func injector(annotations map[string]string) string {
	for key := range annotations {
		switch {
		case strings.HasPrefix(key, "cert-manager.io/inject-"):
			return "cert-manager's cainjector"
		case key == "service.beta.openshift.io/inject-cabundle":
			return "OpenShift's service CA operator"
		}
	}
	return ""
}

// ruleless is W11: webhooks that nobody ever calls.
func (l *linter) ruleless() {
	l.each(func(w *webhook) {
		if len(w.Rules) > 0 {
			return
		}
		text := "is empty: the webhook is never called"
		if c := controllerOf(w); c != nil && c.rules {
			text += ". " + c.name + " fills it in at run time, in its own cluster only"
		}
		l.report(w, Warning, w.at.Child("rules"), "", text)
	})
}

// rewritten is W12: webhooks of which a file says less than what is enforced where their
// controller runs.
func (l *linter) rewritten() {
	l.each(func(w *webhook) {
		c := controllerOf(w)
		switch {
		case c == nil || !l.Registry: // in its own cluster the controller sees to it
		case c.policy && !w.fails:
			l.report(w, Warning, w.at.Child("failurePolicy"), string(admissionregistrationv1.Ignore),
				c.name+" sets Fail at run time, in its own cluster only: here it stays Ignore")
		case c.whole:
			l.report(w, Warning, w.at, "", c.name+" rewrites the rules with every policy, in its own cluster only: here they stay as they are")
		}
	})
}

// rewriter is a project whose controller changes its own webhook configurations.
type rewriter struct {
	suffixes []string // of the names of its webhooks
	name     string
	rules    bool // it fills in rules
	policy   bool // it turns Ignore into Fail
	whole    bool // it writes the webhooks anew
}

// rewriters are those of widely used projects, by the names that these ship.
func rewriters() []rewriter {
	return []rewriter{
		{suffixes: []string{".knative.dev"}, name: "Knative", rules: true},
		{suffixes: []string{".tekton.dev"}, name: "Tekton", rules: true},
		{suffixes: []string{"validation.istio.io"}, name: "istiod", policy: true},
		{suffixes: []string{".kyverno.svc", ".kyverno.svc-fail", ".kyverno.svc-ignore"}, name: "Kyverno", whole: true},
	}
}

// controllerOf returns the project that a webhook is known to belong to; nil: none.
func controllerOf(w *webhook) *rewriter {
	for _, r := range rewriters() {
		for _, suffix := range r.suffixes {
			if strings.HasSuffix(w.Name, suffix) {
				return &r
			}
		}
	}
	return nil
}
