// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func oneOf(at *field.Path, value string, known ...string) field.ErrorList {
	if slices.Contains(known, value) {
		return nil
	}
	if value == "" {
		return field.ErrorList{field.Required(at, "must be "+strings.Join(known, " or "))}
	}
	return field.ErrorList{field.NotSupported(at, value, known)}
}

// file checks the name of a file, which must not be its content: a key must
// reach neither the file system nor a log.
func file(at *field.Path, name, why string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, why)}
	case strings.ContainsAny(name, "\n\r") || strings.Contains(name, "-----BEGIN"):
		return field.ErrorList{field.Forbidden(at, "must be a file reference")}
	}
	return nil
}

// address checks host:port. An empty host is any; port 0 is one that is free.
func address(at *field.Path, value string, lowest uint64) field.ErrorList {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return field.ErrorList{field.Invalid(at, value, "must be host:port")}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < lowest {
		return field.ErrorList{field.Invalid(at, value, "the port must be a number up to 65535")}
	}
	return nil
}

func positive(at *field.Path, n int) field.ErrorList {
	if n > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, n, "must be above zero")}
}

func notNegative(at *field.Path, n int) field.ErrorList {
	if n >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, n, "must not be negative")}
}

// above checks a duration that must not be zero.
func above(at *field.Path, d Duration) field.ErrorList {
	if errs := atLeast(at, d, 0); errs != nil || d.Duration > 0 {
		return errs
	}
	return field.ErrorList{field.Invalid(at, d, "must be above zero")}
}

func atLeast(at *field.Path, d Duration, lowest time.Duration) field.ErrorList {
	switch {
	case d.unread != "":
		return field.ErrorList{field.Invalid(at, d.unread, "must be a duration such as 2s or 250ms")}
	case d.Duration >= lowest:
		return nil
	case lowest == 0:
		return field.ErrorList{field.Invalid(at, d, "must not be negative")}
	}
	return field.ErrorList{field.Invalid(at, d, "must be at least "+lowest.String())}
}
