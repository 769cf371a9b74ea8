// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"net/url"
	"strings"

	"github.com/admission-dispatcher/dispatcher/internal/excerpt"
)

// maxForeign bounds an error that is not our own, in bytes: a collector may have
// put its whole answer into it.
const maxForeign = 512

// minSecret is the size in bytes from which a header's value is a credential: a
// tenant's number is none, and would be found everywhere.
const minSecret = 6

// Secrets are the values of headers to collectors, which no log may have.
type Secrets []string

// Secrets returns the values as they are written and as they are sent.
func (e Environment) Secrets() Secrets {
	if e == nil {
		return nil
	}
	var list Secrets
	for _, name := range otlp("HEADERS") {
		for _, header := range strings.Split(e(name), ",") {
			_, value, _ := strings.Cut(header, "=")
			list = list.with(value)
			if plain, err := url.PathUnescape(value); err == nil {
				list = list.with(plain)
			}
		}
	}
	return list
}

func (s Secrets) with(value string) Secrets {
	if value = strings.TrimSpace(value); len(value) >= minSecret {
		s = append(s, value)
	}
	return s
}

// hidden stands where a value was.
const hidden = "***"

// Hide returns the text of an error without any of the values.
func (s Secrets) Hide(err error) string {
	text := err.Error()
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return excerpt.Cut(text, maxForeign)
}
