// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/registration"
)

func newRegistration(o Options) *cobra.Command {
	var r registering
	cmd := &cobra.Command{
		Use:   "registration --config FILE --cluster NAME [--phase PHASE] [--static] [--caller] | --rbac [--config FILE --cluster NAME] [--rbac-user NAME]",
		Short: "Print what a cluster applies to call the dispatcher",
		Long: `Print what a cluster applies to call the dispatcher: a mutating and a validating
webhook configuration, made from the webhooks that serve the cluster and from
the bypasses. The same configuration prints the same bytes. The configuration
file's registration.url says where the dispatcher is.

With --rbac, print instead what lets the dispatcher read the cluster's
namespaces and ask its authorizer, for spec.kubeconfigFile of the Cluster. With
a --config FILE and a --cluster NAME these are the rights that the plugins,
policies and webhooks of that cluster need, and no others.`,
	}
	path := configFlag(cmd, false)
	f := cmd.Flags()
	f.StringVar(&r.cluster, "cluster", "", "the Cluster to register the dispatcher in")
	f.StringVar(&r.phase, "phase", "", "validate or mutate: only that configuration (default both)")
	f.BoolVar(&r.static, "static", false, "as a manifest for the control plane's disk instead of an API object")
	f.BoolVar(&r.caller, "caller", false, "print instead the files that make kube-apiserver authenticate")
	f.BoolVar(&r.rbac, "rbac", false, "print instead the rights to read namespaces, and what plugins and policies read")
	f.StringVar(&r.user, "rbac-user", "", "the user who gets them; default: a ServiceAccount, which is created")
	cmd.MarkFlagsMutuallyExclusive("rbac", "static")
	cmd.MarkFlagsMutuallyExclusive("rbac", "caller")
	cmd.MarkFlagsMutuallyExclusive("rbac", "phase")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case !r.rbac && (*path == "" || r.cluster == ""):
			return errors.New("name a --config FILE and a --cluster NAME, or --rbac")
		case r.rbac && (*path == "") != (r.cluster == ""):
			return errors.New("--rbac needs a --config FILE and a --cluster NAME, or neither")
		case !r.rbac && r.user != "":
			return errors.New("--rbac-user goes with --rbac")
		}
		return cobra.NoArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out, err := r.print(cmd, o, *path)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(out)
		return err
	}
	return cmd
}

// registering is what the flags ask for.
type registering struct {
	cluster, phase string
	static, caller bool
	rbac           bool
	user           string // for rbac
}

func (r registering) print(cmd *cobra.Command, o Options, path string) ([]byte, error) {
	if r.rbac && path == "" {
		return registration.RBAC(r.user, nil), nil
	}
	if _, ok := parsePhase(r.phase); r.phase != "" && !ok {
		return nil, fmt.Errorf("--phase must be validate or mutate, not %q", r.phase)
	}
	cfg, err := loadConfig(cmd.ErrOrStderr(), path)
	if err != nil {
		return nil, err
	}
	cluster, err := compiledCluster(cmd.ErrOrStderr(), o, cfg, r.cluster)
	if err != nil {
		return nil, err
	}
	if r.rbac {
		return registration.RBAC(r.user, cluster), nil
	}
	options, err := registrationOptions(cfg, cluster.Name, r.static)
	if err != nil {
		return nil, err
	}
	if r.caller {
		u, err := url.Parse(options.URL)
		if err != nil {
			return nil, err
		}
		return registration.Caller(u.Host, r.static), nil
	}
	made, err := registration.New(cluster, options)
	if err != nil {
		return nil, err
	}
	if phase, ok := parsePhase(r.phase); ok {
		made = made.Only(phase)
	}
	return made.YAML(cluster)
}

func registrationOptions(cfg *config.Config, cluster string, static bool) (registration.Options, error) {
	o := registration.Options{URL: strings.ReplaceAll(cfg.Registration.URL, config.ClusterPlaceholder, cluster), Static: static}
	if o.URL == "" {
		return o, errors.New("registration.url is not set in the configuration file: say where clusters reach the dispatcher")
	}
	if cfg.Registration.CAFile == "" {
		return o, nil
	}
	var err error
	if o.CABundle, err = os.ReadFile(cfg.Registration.CAFile); err != nil {
		return o, fmt.Errorf("registration.caFile: %w", err)
	}
	return o, nil
}
