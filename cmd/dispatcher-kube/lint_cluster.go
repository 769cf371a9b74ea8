// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/adopt"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/inventory"
	"github.com/admission-dispatcher/dispatcher/lint"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
	"github.com/admission-dispatcher/dispatcher/registration"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// runLint looks at a cluster.
func runLint(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("dispatcher-kube lint", flag.ContinueOnError)
	var a access
	a.flags(f)
	path := f.String("config", "", "the dispatcher's `FILE`, a DispatcherConfiguration, to compare the cluster with what is registered there (W8)")
	cluster := f.String("cluster", "", "`NAME` of the Cluster in it that is looked at")
	format := f.String("o", "text", "output `FORMAT`: text or json")
	rbac := f.Bool("rbac", false, "print the rights that this needs in the cluster, and read nothing")
	user := f.String("rbac-user", "admission-dispatcher", "`NAME` of the user who gets them")
	if err := parse(f, args, stderr); err != nil {
		return err
	}
	if *rbac {
		_, err := io.WriteString(stdout, inventory.RBAC(*user))
		return err
	}
	if a.kubeconfig == "" || (*path == "") != (*cluster == "") || *format != "text" && *format != "json" {
		_, _ = fmt.Fprintln(stderr, "error: --kubeconfig is required, --config and --cluster go together, and -o is text or json")
		return errUsage
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	found, err := inventory.Read(ctx, client)
	if err != nil {
		return err
	}
	for _, note := range found.Notes {
		_, _ = fmt.Fprintf(stderr, "note: %s\n", note)
	}
	found.Lint.Now = time.Now()
	if *path != "" {
		if err := compare(&found.Lint, *path, *cluster); err != nil {
			return err
		}
	}
	list := lint.Report(&found.Lint)
	if *format == "json" {
		err = lint.WriteJSON(stdout, list)
	} else {
		err = lint.WriteText(stdout, list, len(found.Lint.Configurations))
	}
	if err == nil && lint.HasError(list) {
		err = errSaid
	}
	return err
}

// compare adds what the dispatcher's registry says of the cluster.
func compare(in *lint.Input, path, cluster string) error {
	cfg, problems := config.Load(path)
	if len(problems) > 0 {
		return errors.New(problems[0].String())
	}
	compiledIn, err := plugin.NewSet(kubernetes.Plugins()...)
	if err != nil {
		return err
	}
	settings := cfg.Registry(nil, nil)
	settings.Compile.Plugins = compiledIn
	snapshot, problems, _ := registry.Validate(settings)
	if len(problems) > 0 {
		return errors.New(problems[0].String())
	}
	of := snapshot.Clusters[cluster]
	if of == nil {
		return fmt.Errorf("there is no Cluster %q in the sources of %s", cluster, path)
	}
	in.Registered = registered(of)
	in.Callers = callers(settings, cluster)
	if cfg.Registration.URL == "" {
		return nil // whether the registration is current cannot be said
	}
	o := registration.Options{URL: strings.ReplaceAll(cfg.Registration.URL, config.ClusterPlaceholder, cluster)}
	if cfg.Registration.CAFile != "" {
		if o.CABundle, err = os.ReadFile(cfg.Registration.CAFile); err != nil {
			return fmt.Errorf("registration.caFile: %w", err)
		}
	}
	made, err := registration.New(of, o)
	if err != nil {
		return err
	}
	in.Generated = generated(made)
	return nil
}

// registered is the webhooks that the dispatcher calls for a cluster, as
// configuration/webhook, under the names that they may have in the cluster.
func registered(c *chain.Cluster) map[string]bool {
	names := map[string]bool{}
	for _, phase := range []*chain.Chain{c.Validating, c.Mutating} {
		for _, e := range phase.Webhooks {
			names[e.ID.Configuration+"/"+e.ID.Name] = true
			for _, original := range adopt.Originals(c.Name, e.ID.Configuration) {
				names[original+"/"+e.ID.Name] = true
			}
		}
	}
	return names
}

// callers are the API groups that the Cluster's callers serve.
func callers(s registry.Settings, cluster string) map[string]bool {
	groups := map[string]bool{}
	reader := manifest.Reader{Sources: s.Sources, FileRoots: s.FileRoots}
	objects := reader.Read(context.Background()).Objects
	for i := range objects.Clusters {
		if objects.Clusters[i].Name != cluster {
			continue
		}
		for _, caller := range objects.Clusters[i].Spec.Authentication.Callers {
			for _, group := range caller.APIGroups {
				groups[group] = true
			}
		}
	}
	return groups
}

// generated is a registration for package lint.
func generated(r registration.Registration) (list []lint.Configuration) {
	if m := r.Mutating; m != nil {
		list = append(list, lint.Configuration{Object: "MutatingWebhookConfiguration/" + m.Name, Name: m.Name, Mutating: true, Webhooks: m.Webhooks})
	}
	if v := r.Validating; v != nil {
		c := lint.Configuration{Object: "ValidatingWebhookConfiguration/" + v.Name, Name: v.Name}
		for i := range v.Webhooks {
			w := &v.Webhooks[i]
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
				SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
			})
		}
		list = append(list, c)
	}
	return list
}
