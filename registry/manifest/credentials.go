// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Credentials is the credential of one access as its files have it: whoever renews
// a token replaces the file, and the next request has the new one. It is safe for
// concurrent use.
type Credentials struct {
	access KubeAccess

	// mu is held while the files are read, so that who renews them has them parsed once.
	// Those wait who ask this one API, and need them first.
	mu   sync.Mutex
	read *[4][]byte // the files that good is made of; nil: there is none yet
	good Credential
}

// NewCredentials returns the credential of a. It reads nothing yet.
func NewCredentials(a KubeAccess) *Credentials { return &Credentials{access: a} }

// Current reads the files and returns the credential. With an error, which shows no
// secret, it is the last good one; one without Token and Certificate if there was
// none.
func (c *Credentials) Current() (Credential, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	read, err := c.access.Credential.contents()
	if err != nil || c.read != nil && slices.EqualFunc(c.read[:], read[:], bytes.Equal) {
		return c.good, err
	}
	credential, err := c.access.parse(read)
	if err == nil {
		c.read, c.good = &read, credential
	}
	return c.good, err
}

// The places of contents.
const (
	inKubeconfig = iota
	inTokenFile
	inCertificateFile
	inKeyFile
)

// files returns the files in the places of contents.
func (s *CredentialSource) files() [4]credentialFile {
	return [...]credentialFile{
		inKubeconfig:      {"kubeconfig", s.Kubeconfig},
		inTokenFile:       {"tokenFile", s.TokenFile},
		inCertificateFile: {"client-certificate", s.CertificateFile},
		inKeyFile:         {"client-key", s.KeyFile},
	}
}

// credentialFile is a file and what it is called in a kubeconfig.
type credentialFile struct{ what, path string }

// outside reports a file that lies elsewhere than it may (E17). What else is wrong
// with the files may have passed by the time when they are read.
func (s *CredentialSource) outside(within *roots) error {
	for _, f := range s.files() {
		if f.path == "" {
			continue
		}
		if _, err := within.find(f.path); errors.Is(err, errOutside) {
			return fmt.Errorf("%s: %w", f.what, err)
		}
	}
	return nil
}

// contents reads the files.
func (s *CredentialSource) contents() (read [4][]byte, err error) {
	within := openRoots(filepath.SplitList(s.Roots)...)
	defer within.close()
	for i, f := range s.files() {
		if f.path == "" {
			continue
		}
		if read[i], err = within.read(f.path); err != nil {
			return read, fmt.Errorf("%s: %w", f.what, UnreadableFile(err))
		}
	}
	return read, nil
}

var errOtherAccess = errors.New("the kubeconfig names another server, or other files, than the configuration that is served")

// parse makes a credential of the files' contents.
func (a KubeAccess) parse(read [4][]byte) (Credential, error) {
	user := kubeUser{}
	if a.Credential.Kubeconfig != "" {
		held, err := a.held(read[inKubeconfig])
		if err != nil {
			return Credential{}, err
		}
		user = *held
	}
	c, err := user.tokenOf(a.Credential, read[inTokenFile])
	if err != nil {
		return Credential{}, err
	}
	certificate, key := held(user.CertificateData, read[inCertificateFile]), held(user.KeyData, read[inKeyFile])
	if len(certificate) == 0 {
		return c, nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return Credential{}, fmt.Errorf("client-certificate: %s", strings.TrimPrefix(err.Error(), "tls: "))
	}
	if now := time.Now(); now.After(pair.Leaf.NotAfter) {
		return Credential{}, fmt.Errorf("client-certificate: has expired at %s", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	c.Certificate = &pair
	return c, nil
}

func held(data, named []byte) []byte {
	if len(data) > 0 {
		return data
	}
	return named
}

func (u *kubeUser) tokenOf(s CredentialSource, file []byte) (Credential, error) {
	switch {
	case s.TokenFile != "":
		token, err := printableToken(file)
		if err != nil {
			return Credential{}, fmt.Errorf("tokenFile: %w", err)
		}
		return Credential{Token: token}, nil
	case u.Token != "":
		token, err := printableToken([]byte(u.Token))
		if err != nil {
			return Credential{}, fmt.Errorf("token %w", err)
		}
		return Credential{Token: token}, nil
	}
	return Credential{}, nil
}

// held returns the user of a kubeconfig that is still this access. A credential for
// another server must not reach the one that is served: it waits for the Snapshot.
func (a KubeAccess) held(data []byte) (*kubeUser, error) {
	k, err := parseKubeconfig(data)
	if err != nil {
		return nil, err
	}
	directories := filepath.SplitList(a.Credential.Roots)
	at := kubeconfigAt{k, reference{directories[0], a.Credential.Kubeconfig}, directories[1:]}
	within := openRoots(directories...)
	defer within.close()
	now, err := at.access(func(r reference) ([]byte, error) { return within.read(r.path) })
	if err != nil {
		return nil, err
	}
	if now != a {
		return nil, errOtherAccess
	}
	return &k.user, nil
}
