// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/registration"
)

func newRegistration() *cobra.Command {
	var (
		cluster        string
		static, caller bool
	)
	cmd := &cobra.Command{
		Use:   "registration --config FILE --cluster NAME [--static] [--caller]",
		Short: "Print what a cluster applies to call the dispatcher",
		Long: `Print what a cluster applies to call the dispatcher: a mutating and a validating
webhook configuration, made from the webhooks that serve the cluster and from
the bypasses. The same configuration prints the same bytes. The configuration
file's registration.url says where the dispatcher is.`,
		Args: cobra.NoArgs,
	}
	path := configFlag(cmd, true)
	f := cmd.Flags()
	f.StringVar(&cluster, "cluster", "", "the Cluster to register the dispatcher in")
	f.BoolVar(&static, "static", false, "as a manifest for the control plane's disk instead of an API object")
	f.BoolVar(&caller, "caller", false, "print instead the files that make kube-apiserver authenticate")
	_ = cmd.MarkFlagRequired("cluster") // fails only for a flag that does not exist
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out, err := register(cmd, *path, cluster, static, caller)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(out)
		return err
	}
	return cmd
}

func register(cmd *cobra.Command, path, name string, static, caller bool) ([]byte, error) {
	cfg, err := loadConfig(cmd.ErrOrStderr(), path)
	if err != nil {
		return nil, err
	}
	options, err := registrationOptions(cfg, static)
	if err != nil {
		return nil, err
	}
	cluster, err := compiledCluster(cmd.ErrOrStderr(), cfg, name)
	if err != nil {
		return nil, err
	}
	if caller {
		u, err := url.Parse(options.URL)
		if err != nil {
			return nil, err
		}
		return registration.Caller(u.Host), nil
	}
	return registration.New(cluster, options).YAML(cluster)
}

func registrationOptions(cfg *config.Config, static bool) (registration.Options, error) {
	o := registration.Options{URL: cfg.Registration.URL, Static: static}
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
