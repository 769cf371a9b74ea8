// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
)

// listener is a listener's name for people, its field in the configuration, and how its
// roles begin in metrics.
type listener struct{ name, field, role string }

var admissionListener = listener{"admission", "tls", ""}

// identity is what credentials make: how to listen, and the authorities of clients.
type identity struct {
	tls         *tls.Config
	authorities []*x509.Certificate
	trusted     *trust.Authorities // the same, for the admission listener
}

// credentials is what the files of config.TLS hold.
type credentials struct{ certificate, key, clientCAs []byte }

func readCredentials(of listener, files config.TLS) (credentials, error) {
	var in credentials
	for _, f := range []struct {
		field, path string
		into        *[]byte
	}{
		{".certFile", files.CertFile, &in.certificate},
		{".keyFile", files.KeyFile, &in.key},
		{".clientCAFile", files.ClientCAFile, &in.clientCAs},
	} {
		if f.path == "" {
			continue
		}
		data, err := os.ReadFile(f.path)
		if err != nil {
			return credentials{}, fmt.Errorf("%s%s %s: %w", of.field, f.field, f.path, cause(err))
		}
		*f.into = data
	}
	return in, nil
}

// cause drops the path from a file system's error; the message has it.
func cause(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

func (in credentials) sum() [sha256.Size]byte {
	var all []byte
	for _, part := range [][]byte{in.certificate, in.key, in.clientCAs} {
		all = binary.LittleEndian.AppendUint64(all, uint64(len(part)))
		all = append(all, part...)
	}
	return sha256.Sum256(all)
}

// compile checks that everything is whole and fits together.
func (in credentials) compile(of listener, files config.TLS) (*identity, error) {
	if _, err := parseCertificates(in.certificate); err != nil {
		return nil, fmt.Errorf("%s.certFile %s: %w", of.field, files.CertFile, err)
	}
	pair, err := tls.X509KeyPair(in.certificate, in.key)
	if err != nil {
		return nil, fmt.Errorf("%[1]s.certFile %[2]s with %[1]s.keyFile %[3]s: %[4]w", of.field, files.CertFile, files.KeyFile, err)
	}
	cfg := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.NoClientCert,
		// A resumed session would be trusted by the authorities of yesterday, and
		// kube-apiserver resumes none.
		SessionTicketsDisabled: true,
	}
	if files.ClientCAFile == "" {
		return &identity{tls: cfg}, nil
	}
	authorities, err := parseCertificates(in.clientCAs)
	if err != nil {
		return nil, fmt.Errorf("%s.clientCAFile %s: %w", of.field, files.ClientCAFile, err)
	}
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	if files.ClientAuth == config.IfGiven {
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	}
	id := &identity{tls: cfg, authorities: authorities}
	if of == admissionListener {
		id.trusted = trust.NewAuthorities(authorities) // the server verifies against it
		return id, nil
	}
	cfg.ClientCAs = x509.NewCertPool()
	for _, ca := range authorities {
		cfg.ClientCAs.AddCert(ca)
	}
	if namesBytes(authorities) > maxNamesBytes {
		return nil, fmt.Errorf("%s.clientCAFile %s: the names of %d authorities do not fit into a TLS handshake", of.field, files.ClientCAFile, len(authorities))
	}
	return id, nil
}

// maxNamesBytes is what TLS has for the names of the authorities that crypto/tls
// sends to clients, each behind two bytes of length. With more, every handshake
// would fail.
const maxNamesBytes = 1<<16 - 1

func namesBytes(authorities []*x509.Certificate) int {
	names := map[string]bool{}
	total := 0
	for _, ca := range authorities {
		if name := string(ca.RawSubject); !names[name] {
			names[name] = true
			total += 2 + len(name)
		}
	}
	return total
}

// parseCertificates reads the certificates of a PEM file, all of them: a file
// that is being written ends in half a block. Blocks of other types are left out.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	begun := bytes.Count(data, []byte("-----BEGIN CERTIFICATE-----"))
	var certificates []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	switch {
	case begun == 0:
		return nil, errors.New("holds no PEM certificate")
	case len(certificates) < begun:
		return nil, errors.New("holds an incomplete PEM block")
	}
	return certificates, nil
}
