// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

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
	Reference
	roots []string
}

// access returns the access that the kubeconfig describes; read reads the files of
// the API's authorities.
func (k *kubeconfigAt) access(read func(Reference) ([]byte, error)) (KubeAccess, error) {
	a := KubeAccess{Server: k.cluster.Server, ServerName: k.cluster.TLSServerName, CA: string(k.cluster.CAData)}
	if len(k.cluster.CAData) == 0 && k.cluster.CA != "" {
		if LooksSecret(k.cluster.CA) {
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
		case LooksSecret(f.name):
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
