// SPDX-License-Identifier: Apache-2.0

// Package pki makes throw-away certificates for the demo and for tests. Keys
// are short-lived and never leave the process that asked for them, unless it
// writes them to a file.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	// Certificate is the authority's own, and PEM what stands in a file.
	Certificate *x509.Certificate
	PEM         []byte

	key *ecdsa.PrivateKey
}

// Subject is what a certificate says of its holder. Zero times mean from an hour
// ago, or from an hour before the end, for a day.
type Subject struct {
	CommonName          string
	DNSNames            []string
	IPs                 []net.IP
	URIs                []string
	NotBefore, NotAfter time.Time
}

// OnLoopback is the Subject of who serves on 127.0.0.1 or at these names, or calls.
func OnLoopback(commonName string, dnsNames ...string) Subject {
	return Subject{CommonName: commonName, DNSNames: dnsNames, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

// Pair is a certificate with its key, in PEM.
type Pair struct{ Certificate, Key []byte }

// Write writes the files name.crt and name.key.
func (p Pair) Write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".crt"), p.Certificate, 0o600)
}

// NewAuthority returns a self-signed authority that lasts for a day.
func NewAuthority(name string) (*Authority, error) {
	return NewAuthorityUntil(name, time.Time{})
}

// NewAuthorityUntil is NewAuthority for another end; the zero time is in a day.
func NewAuthorityUntil(name string, notAfter time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of authority %s: %w", name, err)
	}
	return (&Authority{key: key}).Again(name, notAfter)
}

// Again returns an authority with the key of a, and a certificate of its own.
func (a *Authority) Again(name string, notAfter time.Time) (*Authority, error) {
	template, err := newTemplate(&Subject{CommonName: name, NotAfter: notAfter})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign authority %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse authority %s: %w", name, err)
	}
	return &Authority{Certificate: certificate, key: a.key, PEM: encode("CERTIFICATE", der)}, nil
}

// Issue returns a certificate for s that is good for servers and clients.
func (a *Authority) Issue(s Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generate a key: %w", err)
	}
	template, err := newTemplate(&s)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, &key.PublicKey, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign a certificate: %w", err)
	}
	return pair(der, key)
}

// Own returns the authority's own certificate with its key.
func (a *Authority) Own() (Pair, error) { return pair(a.Certificate.Raw, a.key) }

func pair(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode a key: %w", err)
	}
	return Pair{Certificate: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", secret)}, nil
}

// Pool returns a pool with this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// TLS returns the pair as crypto/tls wants it.
func (p Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Certificate, p.Key) }

func newTemplate(s *Subject) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.CommonName},
		DNSNames:     s.DNSNames,
		IPAddresses:  s.IPs,
		NotBefore:    s.NotBefore,
		NotAfter:     s.NotAfter,
	}
	if t.NotAfter.IsZero() {
		t.NotAfter = time.Now().Add(24 * time.Hour)
	}
	if t.NotBefore.IsZero() {
		t.NotBefore = time.Now().Add(-time.Hour)
		if before := t.NotAfter.Add(-time.Hour); before.Before(t.NotBefore) {
			t.NotBefore = before // it has expired
		}
	}
	for _, text := range s.URIs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("URI of a certificate: %w", err)
		}
		t.URIs = append(t.URIs, u)
	}
	return t, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
