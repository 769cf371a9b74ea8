// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admission-dispatcher/dispatcher/registration"
)

func newRegistration(o Options) *cobra.Command {
	var r registering
	cmd := &cobra.Command{
		Use: "registration --config FILE (--cluster NAME | --all --out DIR) [--phase PHASE] [--static] [--caller] [--for PLATFORM] " +
			"[--path-secret-file FILE] [--service NAMESPACE/NAME[:PORT] --service-ca FILE] [--out DIR] [--diff FILE] | --rbac [--config FILE --cluster NAME] [--rbac-user NAME]",
		Short: "Print what a cluster applies to call the dispatcher",
		Long: `Print what a cluster applies to call the dispatcher: a mutating and a validating
webhook configuration, made from the webhooks that serve the cluster and from
the bypasses. The same configuration prints the same bytes. The configuration
file's registration.url says where the dispatcher is. With --service the cluster
calls a Service of its own instead, such as that of dispatcher-forward.

A Cluster that is known by a path secret gets a URL with a placeholder, which no
API server accepts. --path-secret-file names a file with the secret; {cluster} in
its name is the name of the Cluster.

With --caller, print instead the files that make kube-apiserver present the
credential that the Cluster has.

With --diff, print instead how what the cluster has, as kubectl get -o yaml prints
it, differs in meaning. The exit code is 1 where it does. A FILE of - is the
standard input.

With --out, write a directory for each cluster into DIR in place of printing;
--all does that for all clusters.

With --rbac, print instead what lets the dispatcher read the cluster's
namespaces and ask its authorizer, for spec.kubeconfigFile of the Cluster. With
a --config FILE and a --cluster NAME these are the rights that the plugins,
policies and webhooks of that cluster need, and no others.`,
	}
	path := configFlag(cmd, false)
	r.flags(cmd.Flags())
	for _, pair := range [][2]string{
		{"rbac", "static"}, {"rbac", "caller"}, {"rbac", "phase"}, {"rbac", "for"}, {"rbac", "path-secret-file"}, {"rbac", "diff"},
		{"all", "cluster"}, {"all", "diff"}, {"diff", "caller"}, {"diff", "out"}, {"caller", "phase"}, {"caller", "path-secret-file"},
		{"service", "static"}, {"service", "caller"}, {"service", "rbac"}, // the manifests of static and caller name URLs
	} {
		cmd.MarkFlagsMutuallyExclusive(pair[0], pair[1])
	}
	cmd.MarkFlagsRequiredTogether("service", "service-ca")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := r.check(*path); err != nil {
			return err
		}
		if _, ok := parsePhase(r.phase); r.phase != "" && !ok {
			return fmt.Errorf("--phase must be validate or mutate, not %q", r.phase)
		}
		return cobra.NoArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return r.run(cmd, o, *path) }
	return cmd
}

// registering is what the flags ask for.
type registering struct {
	cluster, phase string
	all            bool
	static, caller bool
	platform       string
	secretFile     string
	out, diff      string
	rbac           bool
	user           string // for rbac

	service, serviceCA string
}

func (r *registering) flags(f *pflag.FlagSet) {
	f.StringVar(&r.cluster, "cluster", "", "the Cluster to register the dispatcher in")
	f.BoolVar(&r.all, "all", false, "all Clusters, in place of one")
	f.StringVar(&r.phase, "phase", "", "validate or mutate: only that configuration (default both)")
	f.BoolVar(&r.static, "static", false, "as a manifest for the control plane's disk instead of an API object")
	f.BoolVar(&r.caller, "caller", false, "print instead the files that make kube-apiserver authenticate")
	f.StringVar(&r.platform, "for", "", "where the control plane runs, for its steps and known obstacles: "+strings.Join(registration.Platforms(), ", "))
	f.StringVar(&r.secretFile, "path-secret-file", "", "file with the path secret that the URL gets")
	f.StringVar(&r.out, "out", "", "directory to write to, one directory for each cluster")
	f.StringVar(&r.diff, "diff", "", "file with what the cluster has; - is the standard input")
	f.StringVar(&r.service, "service", "", "call this Service of the cluster, NAMESPACE/NAME[:PORT], instead of registration.url")
	f.StringVar(&r.serviceCA, "service-ca", "", "FILE with the authorities of the Service's certificate, in PEM")
	f.BoolVar(&r.rbac, "rbac", false, "print instead the rights to read namespaces, and what plugins and policies read")
	f.StringVar(&r.user, "rbac-user", "", "the user who gets them; default: a ServiceAccount, which is created")
}

// check returns what of the flags does not go together.
func (r *registering) check(config string) error {
	named := r.cluster != "" || r.all
	switch {
	case r.all && r.out == "":
		return errors.New("--all needs an --out DIR")
	case !r.rbac && (config == "" || !named):
		return errors.New("name a --config FILE and a --cluster NAME, or --rbac")
	case r.rbac && (config == "") != !named:
		return errors.New("--rbac needs a --config FILE and a --cluster NAME, or neither")
	case !r.rbac && r.user != "":
		return errors.New("--rbac-user goes with --rbac")
	case r.platform != "" && registration.PlatformOf(r.platform) == nil:
		return fmt.Errorf("--for must be one of %s, not %q", strings.Join(registration.Platforms(), ", "), r.platform)
	}
	return nil
}
