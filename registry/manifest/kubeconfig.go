// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// kubeconfig is what the current context of one selects.
type kubeconfig struct {
	cluster kubeCluster
	user    kubeUser
}

// kubeCluster says where an API is served. The fields without a type are refused.
type kubeCluster struct {
	Server             string `json:"server"`
	TLSServerName      string `json:"tls-server-name"`
	CA                 string `json:"certificate-authority"`
	CAData             []byte `json:"certificate-authority-data"`
	DisableCompression bool   `json:"disable-compression"` // we ask for none
	Insecure           any    `json:"insecure-skip-tls-verify"`
	Proxy              any    `json:"proxy-url"`
	Extensions         any    `json:"extensions"` // never read
}

// kubeUser says who we are there. The fields without a type are refused.
type kubeUser struct {
	Certificate     string `json:"client-certificate"`
	CertificateData []byte `json:"client-certificate-data"`
	Key             string `json:"client-key"`
	KeyData         []byte `json:"client-key-data"`
	Token           string `json:"token"`
	TokenFile       string `json:"tokenFile"`
	Exec            any    `json:"exec"`
	AuthProvider    any    `json:"auth-provider"`
	Username        any    `json:"username"`
	Password        any    `json:"password"`
	As              any    `json:"as"`
	AsUID           any    `json:"as-uid"`
	AsGroups        any    `json:"as-groups"`
	AsUserExtra     any    `json:"as-user-extra"`
	Extensions      any    `json:"extensions"` // never read
}

// kubeconfigFile is the file (client-go, tools/clientcmd/api/v1).
type kubeconfigFile struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Preferences any    `json:"preferences"`
	Extensions  any    `json:"extensions"`
	Clusters    []struct {
		Name    string      `json:"name"`
		Cluster kubeCluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string   `json:"name"`
		User kubeUser `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster    string `json:"cluster"`
			User       string `json:"user"`
			Namespace  string `json:"namespace"`
			Extensions any    `json:"extensions"`
		} `json:"context"`
	} `json:"contexts"`
	CurrentContext string `json:"current-context"`
}

// parseKubeconfig reads a kubeconfig strictly. No error holds anything of the
// file but names.
func parseKubeconfig(data []byte) (*kubeconfig, error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, errors.New("is not YAML, or has a key twice") // its parser's words may hold a token
	}
	var file kubeconfigFile
	unknown, err := json.UnmarshalStrict(text, &file)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return nil, fmt.Errorf("is not a kubeconfig: %w", err)
	}
	k, err := file.current()
	if err != nil {
		return nil, err
	}
	return k, errors.Join(k.cluster.validate(), k.user.validate())
}

// current returns what the current context names.
func (f *kubeconfigFile) current() (*kubeconfig, error) {
	if f.CurrentContext == "" {
		return nil, errors.New("has no current-context")
	}
	for i := range f.Contexts {
		if f.Contexts[i].Name == f.CurrentContext {
			return f.selected(f.Contexts[i].Context.Cluster, f.Contexts[i].Context.User)
		}
	}
	return nil, fmt.Errorf("has no context %q, which is its current one", f.CurrentContext)
}

func (f *kubeconfigFile) selected(cluster, user string) (*kubeconfig, error) {
	for i := range f.Clusters {
		if f.Clusters[i].Name != cluster {
			continue
		}
		for j := range f.Users {
			if f.Users[j].Name == user {
				return &kubeconfig{f.Clusters[i].Cluster, f.Users[j].User}, nil
			}
		}
		return nil, fmt.Errorf("has no user %q, which its current context names", user)
	}
	return nil, fmt.Errorf("has no cluster %q, which its current context names", cluster)
}

func (c *kubeCluster) validate() error {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("cluster.server must be an https URL without user information, query and fragment")
	}
	return errors.Join(
		refused(c.Insecure != nil && c.Insecure != false, "cluster.insecure-skip-tls-verify", "whoever answers could switch policies off"),
		refused(c.Proxy != nil, "cluster.proxy-url", "the API is dialled directly"),
	)
}

func (u *kubeUser) validate() error {
	const program, other = "no program is run for a credential: use a certificate, a token or a tokenFile", "give the user rights of its own"
	err := errors.Join(
		refused(u.Exec != nil, "user.exec", program),
		refused(u.AuthProvider != nil, "user.auth-provider", program),
		refused(u.Username != nil || u.Password != nil, "a username with a password", "API servers take none"),
		refused(u.As != nil || u.AsUID != nil || u.AsGroups != nil || u.AsUserExtra != nil, "user.as", other),
	)
	hasCertificate := u.Certificate != "" || len(u.CertificateData) > 0
	hasKey := u.Key != "" || len(u.KeyData) > 0
	switch {
	case hasCertificate != hasKey:
		return errors.Join(err, errors.New("user: client-certificate and client-key go together"))
	case err == nil && !hasCertificate && u.Token == "" && u.TokenFile == "":
		return errors.New("user: needs a client-certificate, a token or a tokenFile")
	}
	return err
}

func refused(set bool, what, why string) error {
	if !set {
		return nil
	}
	return fmt.Errorf("%s is not supported: %s", what, why)
}

// KubeAccess is where the API of a cluster is, and which files prove there who we
// are. Two that are equal are the same access: a credential that is renewed in its
// files changes nothing here, and Credentials has it.
type KubeAccess struct {
	Server     string // https URL
	ServerName string // that the certificate must have; empty: the host in Server
	CA         string // PEM; empty: the system's trust roots
	Credential CredentialSource
}

// String returns the server.
func (a KubeAccess) String() string { return a.Server }

// CredentialSource is the files in which a credential stands. Fields that are
// empty name none.
type CredentialSource struct {
	// Kubeconfig holds the token, or the certificate or key, itself.
	Kubeconfig               string
	TokenFile                string
	CertificateFile, KeyFile string
	// Roots are the directories that the files must lie in, joined by
	// filepath.ListSeparator.
	Roots string
}

// kubeconfigAt is a kubeconfig and where it stands.
type kubeconfigAt struct {
	*kubeconfig
	reference
	roots []string
}

// access returns the access that the kubeconfig describes; read reads the files of
// the API's authorities.
func (k *kubeconfigAt) access(read func(reference) ([]byte, error)) (KubeAccess, error) {
	a := KubeAccess{Server: k.cluster.Server, ServerName: k.cluster.TLSServerName, CA: string(k.cluster.CAData)}
	if len(k.cluster.CAData) == 0 && k.cluster.CA != "" {
		if looksSecret(k.cluster.CA) {
			return KubeAccess{}, fmt.Errorf("certificate-authority: %w", ErrSecret)
		}
		authorities, err := read(k.sibling(k.cluster.CA))
		if err != nil {
			return KubeAccess{}, fmt.Errorf("certificate-authority: %w", UnreadableFile(err))
		}
		a.CA = string(authorities)
	}
	source, err := k.credential()
	a.Credential = source
	return a, err
}

// credential returns where the credential stands. As in client-go, a certificate
// or key that is held goes before one that is named, and a tokenFile before a
// token.
func (k *kubeconfigAt) credential() (CredentialSource, error) {
	s := CredentialSource{Roots: strings.Join(append([]string{k.source}, k.roots...), string(filepath.ListSeparator))}
	for _, f := range []struct {
		what, name string
		held       bool
		into       *string
	}{
		{"client-certificate", k.user.Certificate, len(k.user.CertificateData) > 0, &s.CertificateFile},
		{"client-key", k.user.Key, len(k.user.KeyData) > 0, &s.KeyFile},
		{"tokenFile", k.user.TokenFile, k.user.TokenFile == "" && k.user.Token != "", &s.TokenFile},
	} {
		switch {
		case f.held:
			s.Kubeconfig = k.path
		case f.name == "":
		case looksSecret(f.name):
			return CredentialSource{}, fmt.Errorf("%s: %w", f.what, ErrSecret)
		default:
			*f.into = k.sibling(f.name).path
		}
	}
	return s, nil
}

// UnreadableFile says that a file cannot be read, without its path.
func UnreadableFile(err error) error {
	if errors.Is(err, ErrSecret) || errors.Is(err, errOutside) {
		return err
	}
	return fmt.Errorf("cannot be read: %w", cause(err))
}

// Credential is what proves to the API of a cluster who we are.
type Credential struct {
	Token       string           // empty: none
	Certificate *tls.Certificate // nil: none is presented
}
