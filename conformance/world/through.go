// SPDX-License-Identifier: Apache-2.0

package world

import (
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"

	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

// considers reports whether the registration's entry of that name is one for a
// webhook.
type considers func(entry, configuration, webhook string) bool

// through returns the API server of a cluster that has the dispatcher as its only
// webhook: as the dispatcher prints it, or for everything.
func (c *Clusters) through(ctx context.Context, index int) (*caller.Caller, considers, error) {
	this, cluster := &c.cases[index], c.places[index]+"cluster"
	client, err := c.world.authority.Issue(pki.OnLoopback(cluster))
	if err != nil {
		return nil, nil, err
	}
	options := caller.Options{
		Namespaces:     namespaces(this.Namespaces),
		Authentication: caller.WithCertificate(c.world.authority.PEM, client.Certificate, client.Key),
		Objects:        objects,
	}
	var of considers
	if this.Registered {
		of, err = c.registered(ctx, c.places[index], &options)
		if err != nil {
			return nil, nil, err
		}
	} else {
		meta := metav1.ObjectMeta{Name: "dispatcher"}
		outer := func(phase string) []admissionregistrationv1.MutatingWebhook {
			return []admissionregistrationv1.MutatingWebhook{c.outer(cluster, phase)}
		}
		options.Mutating = []admissionregistrationv1.MutatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: outer("mutate")}}
		options.Validating = []admissionregistrationv1.ValidatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: caller.ValidatingOf(outer("validate"))}}
	}
	through, err := caller.New(options)
	return through, of, err
}

// registered fills in what the dispatcher prints for the cluster at a place.
func (c *Clusters) registered(ctx context.Context, at string, options *caller.Options) (considers, error) {
	printed, err := c.process.Registration(ctx, at+"cluster")
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(printed)))
	for {
		document, err := decoder.Read()
		if errors.Is(err, io.EOF) {
			return paths(printed, at, options)
		}
		if err != nil {
			return nil, err
		}
		var meta metav1.TypeMeta
		if err := sigsyaml.Unmarshal(document, &meta); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		switch meta.Kind {
		case "MutatingWebhookConfiguration":
			var m admissionregistrationv1.MutatingWebhookConfiguration
			if err := sigsyaml.UnmarshalStrict(document, &m); err != nil {
				return nil, fmt.Errorf("%w in\n%s", err, document)
			}
			options.Mutating = append(options.Mutating, m)
		case "ValidatingWebhookConfiguration":
			var v admissionregistrationv1.ValidatingWebhookConfiguration
			if err := sigsyaml.UnmarshalStrict(document, &v); err != nil {
				return nil, fmt.Errorf("%w in\n%s", err, document)
			}
			options.Validating = append(options.Validating, v)
		case "": // comments only: no webhook serves the phase
		default:
			return nil, fmt.Errorf("the registration has a %s:\n%s", meta.Kind, document)
		}
	}
}

// Comments of a registration: which webhooks the entries of one URL are for.
var (
	entryComment   = regexp.MustCompile(`^# (\S+), and the entries behind it with the same url:$`)
	webhookComment = regexp.MustCompile(`^#   (\S+)/(\S+) \(\w+\)$`)
)

// paths reads which webhooks each validating entry is for.
func paths(printed []byte, at string, options *caller.Options) (considers, error) {
	urls := map[string]string{} // by the name of the entry
	for _, v := range options.Validating {
		for _, w := range v.Webhooks {
			urls[w.Name] = *w.ClientConfig.URL
		}
	}
	webhooks := map[string]map[string]bool{} // by URL, then configuration/webhook
	var current map[string]bool
	for line := range strings.Lines(string(printed)) {
		line = strings.TrimSuffix(line, "\n")
		if m := entryComment.FindStringSubmatch(line); m != nil {
			current = map[string]bool{}
			webhooks[urls[m[1]]] = current
		} else if m := webhookComment.FindStringSubmatch(line); m != nil && current != nil {
			current[strings.TrimPrefix(m[1], at)+"/"+m[2]] = true
		}
	}
	for name, url := range urls {
		if len(webhooks[url]) == 0 {
			return nil, fmt.Errorf("the registration does not say which webhooks %s is for:\n%s", name, printed)
		}
	}
	return func(entry, configuration, webhook string) bool {
		return webhooks[urls[entry]][configuration+"/"+webhook]
	}, nil
}

// outer registers the dispatcher as a cluster does, but for everything.
func (c *Clusters) outer(cluster, phase string) admissionregistrationv1.MutatingWebhook {
	var (
		url          = fmt.Sprintf("%s/v1/clusters/%s/%s", c.process.URL, cluster, phase)
		fail         = admissionregistrationv1.Fail
		equivalent   = admissionregistrationv1.Equivalent
		noneOnDryRun = admissionregistrationv1.SideEffectClassNoneOnDryRun
		never        = admissionregistrationv1.NeverReinvocationPolicy
		scope        = admissionregistrationv1.AllScopes
		timeout      = int32(30)
	)
	return admissionregistrationv1.MutatingWebhook{
		Name:         phase + ".dispatcher.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: c.world.authority.PEM},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: &scope},
		}},
		FailurePolicy:           &fail,
		MatchPolicy:             &equivalent,
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             &noneOnDryRun,
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      &never,
	}
}
