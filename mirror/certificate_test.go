// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"encoding/base64"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// authority returns the certificate of a new authority as data of a Secret.
func authority(t *testing.T, name string) string {
	t.Helper()
	a, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return encoded(string(a.PEM))
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
