// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/registration"
)

// The names of files that --out writes, beside those of a caller.
const (
	registrationFile = "registration.yaml"
	rbacFile         = "rbac.yaml"
)

func (r *registering) run(cmd *cobra.Command, o Options, path string) error {
	if r.rbac && path == "" {
		return r.emit(cmd, "", []registration.File{{Name: rbacFile, Data: registration.RBAC(r.user, nil)}})
	}
	if _, ok := parsePhase(r.phase); r.phase != "" && !ok {
		return fmt.Errorf("--phase must be validate or mutate, not %q", r.phase)
	}
	cfg, err := loadConfig(cmd.ErrOrStderr(), path)
	if err != nil {
		return err
	}
	clusters, err := compiledClusters(cmd.ErrOrStderr(), o, cfg, r.cluster)
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		if r.diff != "" {
			return r.compare(cmd, cfg, cluster)
		}
		files, err := r.files(cfg, cluster)
		if err != nil && r.all {
			err = fmt.Errorf("cluster %s: %w", cluster.Name, err)
		}
		if err != nil {
			return err
		}
		if err := r.emit(cmd, cluster.Name, files); err != nil {
			return err
		}
	}
	return nil
}

// files are what is printed for a cluster.
func (r *registering) files(cfg *config.Config, cluster *chain.Cluster) ([]registration.File, error) {
	if r.rbac {
		return []registration.File{{Name: rbacFile, Data: registration.RBAC(r.user, cluster)}}, nil
	}
	options, err := r.options(cfg, cluster)
	if err != nil {
		return nil, err
	}
	if r.caller {
		u, err := url.Parse(options.URL)
		if err != nil {
			return nil, err
		}
		return registration.Caller(cluster, u.Host, r.static), nil
	}
	made, err := r.make(cluster, options)
	if err != nil {
		return nil, err
	}
	text, err := made.YAML(cluster)
	return []registration.File{{Name: registrationFile, Data: text}}, err
}

func (r *registering) make(cluster *chain.Cluster, o registration.Options) (registration.Registration, error) {
	made, err := registration.New(cluster, o)
	if phase, ok := parsePhase(r.phase); ok && err == nil {
		made = made.Only(phase)
	}
	return made, err
}

// emit writes the files into the directory of the cluster, or prints them. Both may hold a
// path secret: nobody else may read them.
func (r *registering) emit(cmd *cobra.Command, cluster string, files []registration.File) error {
	if r.out == "" {
		_, err := cmd.OutOrStdout().Write(registration.Stream(files))
		return err
	}
	directory := filepath.Join(r.out, cluster)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(directory, f.Name), f.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// mostApplied bounds what --diff reads, in bytes.
const mostApplied = 64 << 20

// compare prints how what the cluster has differs from its registration.
func (r *registering) compare(cmd *cobra.Command, cfg *config.Config, cluster *chain.Cluster) error {
	options, err := r.options(cfg, cluster)
	if err != nil {
		return err
	}
	made, err := r.make(cluster, options)
	if err != nil {
		return err
	}
	in := cmd.InOrStdin()
	if r.diff != "-" {
		file, err := os.Open(r.diff)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, mostApplied+1))
	if err != nil {
		return err
	}
	if len(data) > mostApplied {
		return fmt.Errorf("%s is larger than %d bytes", r.diff, mostApplied)
	}
	applied, err := registration.ReadApplied(data, r.static)
	if err != nil {
		return err
	}
	if phase, ok := parsePhase(r.phase); ok && phase == chain.Mutating {
		applied.Validating = nil
	} else if ok {
		applied.Mutating = nil
	}
	differences := made.Differences(cluster, applied)
	for _, d := range differences {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), d); err != nil {
			return err
		}
	}
	if len(differences) > 0 {
		return errSaid
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "cluster %s applies what is printed now\n", cluster.Name)
	return err
}

func (r *registering) options(cfg *config.Config, cluster *chain.Cluster) (o registration.Options, err error) {
	o.Static, o.Platform = r.static, registration.PlatformOf(r.platform)
	if r.service == "" {
		o.URL, o.CABundle, err = cfg.Registration.Of(cluster.Name)
	} else {
		o.Service, o.CABundle, err = r.ofService()
	}
	if err != nil {
		return o, err
	}
	known := cluster.Anonymous || len(cluster.Credentials.PathSecrets) > 0
	if o.Platform != nil && !o.Platform.Presents && !known && o.Service == nil {
		return o, fmt.Errorf("an API server on %s can be given no credential, and Cluster/%s is known by nothing else: set spec.authentication.pathSecretSHA256, or call a forwarder by --service", r.platform, cluster.Name)
	}
	o.PathSecret, err = r.pathSecret(cluster)
	return o, err
}

// ofService returns the Service that is called in place of the dispatcher, and its authorities.
func (r *registering) ofService() (to *registration.Service, authorities []byte, err error) {
	if to, err = registration.ParseService(r.service); err != nil {
		return nil, nil, fmt.Errorf("--service %w", err)
	}
	if authorities, err = os.ReadFile(r.serviceCA); err != nil {
		return nil, nil, fmt.Errorf("--service-ca: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(authorities) {
		return nil, nil, fmt.Errorf("--service-ca: %s holds no PEM certificate", r.serviceCA)
	}
	return to, authorities, nil
}

// leastVaried is how many different characters a random secret has at least, whatever its
// form: fewer are those of a secret that somebody has made up.
const leastVaried = 8

// pathSecret returns the secret that the URL of the cluster gets; "": none is given, or the
// cluster has none and is one of all. No error shows what the file has.
func (r *registering) pathSecret(cluster *chain.Cluster) (string, error) {
	if r.secretFile == "" || r.all && len(cluster.Credentials.PathSecrets) == 0 {
		return "", nil
	}
	name := strings.ReplaceAll(r.secretFile, config.ClusterPlaceholder, cluster.Name)
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("--path-secret-file: %w", err)
	}
	secret := bytes.TrimRight(data, "\r\n")
	if !chain.IsPathSecret(secret) {
		return "", fmt.Errorf("--path-secret-file: %s must hold a secret of %d to %d lowercase letters and digits that is not 64 hexadecimal digits, as a sum is: openssl rand -hex 20",
			name, chain.MinPathSecret, chain.MaxPathSecret)
	}
	varied := map[byte]bool{}
	for _, c := range secret {
		varied[c] = true
	}
	if len(varied) < leastVaried {
		return "", fmt.Errorf("--path-secret-file: %s holds no random secret: it has %d different characters. Make one with: openssl rand -hex 20", name, len(varied))
	}
	if !cluster.Credentials.Has(secret) {
		return "", fmt.Errorf("--path-secret-file: the secret in %s is not one of Cluster/%s; its sum for spec.authentication.pathSecretSHA256 is %x",
			name, cluster.Name, chain.SumOfPathSecret(secret))
	}
	return string(secret), nil
}
