// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// parseCABundle returns the certificates of a PEM bundle. Text around the
// blocks is fine; any other block is not (E3).
func parseCABundle(bundle []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return nil, errors.New("holds a private key")
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a PEM block %q; only certificates belong here", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d does not parse: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("holds no PEM certificate")
	}
	return certificates, nil
}

// expirySoon is how long before its end a certificate is worth a warning.
const expirySoon = 30 * 24 * time.Hour

// expiryWarning returns what is to be said about the certificates' validity at
// now, or "".
func expiryWarning(certificates []*x509.Certificate, now time.Time) string {
	for _, c := range certificates {
		name := c.Subject.String()
		switch {
		case now.After(c.NotAfter):
			return fmt.Sprintf("certificate %q expired at %s", name, c.NotAfter.UTC().Format(time.RFC3339))
		case now.Add(expirySoon).After(c.NotAfter):
			return fmt.Sprintf("certificate %q expires at %s", name, c.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(c.NotBefore):
			return fmt.Sprintf("certificate %q is not valid before %s", name, c.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	return ""
}
