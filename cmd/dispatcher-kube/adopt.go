// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admission-dispatcher/dispatcher/adopt"
	"github.com/admission-dispatcher/dispatcher/inventory"
)

// runAdopt prints what adopts the configurations of a cluster.
func runAdopt(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("dispatcher-kube adopt", flag.ContinueOnError)
	var a access
	a.flags(f)
	cluster := f.String("cluster", "", "`NAME` of the Cluster that the configurations are registered for")
	name := f.String("configuration", "", "`NAME` of the configuration. Default: all that can be adopted")
	directory := f.String("directory", "", "`DIRECTORY` for the files, which must not exist yet. Default: everything is printed")
	if err := parse(f, args, stderr, "cluster", "kubeconfig"); err != nil {
		return err
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	list, err := inventory.ReadConfigurations(ctx, client)
	if err != nil {
		return err
	}
	r, err := adopt.New(*cluster, list)
	if err != nil {
		return err
	}
	if *name != "" {
		if !slices.ContainsFunc(list, func(o unstructured.Unstructured) bool { return o.GetName() == *name }) {
			return fmt.Errorf("the cluster has no webhook configuration %q", *name)
		}
		r.Plans = slices.DeleteFunc(r.Plans, func(p adopt.Plan) bool { return p.Name != *name })
		r.Skipped = slices.DeleteFunc(r.Skipped, func(s adopt.Skipped) bool { return s.Name != *name })
	}
	for _, s := range r.Skipped {
		_, _ = fmt.Fprintf(stderr, "not adopted: %s/%s: %s\n", s.Kind, s.Name, s.Reason)
		if s.Instead != "" {
			_, _ = fmt.Fprintf(stderr, "  instead: %s\n", s.Instead)
		}
	}
	if len(r.Plans) == 0 {
		return fmt.Errorf("there is nothing to adopt")
	}
	if *directory == "" {
		return printPlans(stdout, *cluster, r.Plans)
	}
	if err := writePlans(*directory, *cluster, r.Plans); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "wrote %d files to %s; %s says what to do with them\n", 3*len(r.Plans)+1, *directory, filepath.Join(*directory, stepsFile))
	return err
}

const stepsFile = "STEPS.txt"

// The files of a plan.
func registrationFile(p *adopt.Plan) string { return "register-" + fileOf(p) + ".yaml" }
func neutraliseFile(p *adopt.Plan) string   { return "neutralise-" + fileOf(p) + ".json" }
func takeBackFile(p *adopt.Plan) string     { return "take-back-" + fileOf(p) + ".json" }

func fileOf(p *adopt.Plan) string {
	return strings.ToLower(strings.TrimSuffix(p.Kind, "WebhookConfiguration")) + "-" + p.Name
}

// steps says in which order things are applied. Between any two of them each webhook is
// called at least once.
func steps(cluster string, plans []adopt.Plan) string {
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	var services []string
	for i := range plans {
		services = append(services, plans[i].Services...)
	}
	slices.Sort(services)
	services = slices.Compact(services)
	line("Nothing has been applied. Between any two of these steps each webhook is called at least once.")
	line("")
	if len(services) > 0 {
		line("0. spec.services of Cluster/%s must say how these Services of the cluster are reached:", cluster)
		for _, s := range services {
			line("     %s", s)
		}
	}
	line("1. Register the webhooks with the dispatcher:")
	for i := range plans {
		line("     kubectl apply -f %s", registrationFile(&plans[i]))
	}
	line("2. Apply to the cluster what this prints now, so that it calls the dispatcher for them:")
	line("     dispatcher registration --config FILE --cluster %s", cluster)
	line("   Each webhook is called twice from now on. \"dispatcher-kube lint\" says so (W8).")
	line("3. The owner leaves the calls of the originals to the dispatcher:")
	patch := func(p *adopt.Plan, file string) {
		line("     kubectl patch %s %s --type=strategic --patch-file %s", strings.ToLower(p.Kind), p.Name, file)
	}
	for i := range plans {
		patch(&plans[i], neutraliseFile(&plans[i]))
	}
	line("")
	line("To take it back, the owner first has the originals called again:")
	for i := range plans {
		patch(&plans[i], takeBackFile(&plans[i]))
	}
	line("Then delete what was registered, and apply the registration anew as in 2.")
	return b.String()
}

// printPlans prints everything as one document for people.
func printPlans(w io.Writer, cluster string, plans []adopt.Plan) error {
	var b strings.Builder
	for line := range strings.Lines(steps(cluster, plans)) {
		b.WriteString(cmp.Or(strings.TrimRight("# "+line, " \n"), "#") + "\n")
	}
	for i := range plans {
		p := &plans[i]
		_, _ = fmt.Fprintf(&b, "---\n# %s\n%s", registrationFile(p), p.Registration)
		_, _ = fmt.Fprintf(&b, "# %s\n# %s\n# %s\n# %s\n", neutraliseFile(p), p.Neutralise, takeBackFile(p), p.TakeBack)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writePlans writes everything into a directory that does not exist yet.
func writePlans(directory, cluster string, plans []adopt.Plan) error {
	if err := os.Mkdir(directory, 0o755); err != nil {
		return err
	}
	put := func(name string, data []byte) error {
		return os.WriteFile(filepath.Join(directory, name), data, 0o644) //nolint:gosec // nothing in it is secret
	}
	for i := range plans {
		p := &plans[i]
		for name, data := range map[string][]byte{registrationFile(p): p.Registration, neutraliseFile(p): p.Neutralise, takeBackFile(p): p.TakeBack} {
			if err := put(name, data); err != nil {
				return err
			}
		}
	}
	return put(stepsFile, []byte(steps(cluster, plans)))
}
