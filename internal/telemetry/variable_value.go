// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"crypto/x509"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func oneOf(words ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(words, value) }
}

// oneOfFolded is oneOf where case does not matter.
func oneOfFolded(words ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(words, strings.ToLower(value)) }
}

// someOf wants words with commas between them.
func someOf(known ...string) func(string) bool {
	return func(value string) bool {
		return !slices.ContainsFunc(words(value), func(word string) bool { return !slices.Contains(known, word) })
	}
}

func isBool(value string) bool {
	return strings.EqualFold(value, "true") || strings.EqualFold(value, "false")
}

func isRatio(value string) bool {
	ratio, err := strconv.ParseFloat(value, 64)
	return err == nil && ratio >= 0 && ratio <= 1
}

func isNumber(value string) bool {
	_, err := strconv.Atoi(value)
	return err == nil
}

func isCount(value string) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n >= 0
}

func isSize(value string) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n > 0
}

func isURL(value string) bool {
	_, err := url.Parse(value)
	return err == nil && utf8.ValidString(value)
}

func isHTTP(value string) bool {
	u, err := url.Parse(value)
	return err == nil && utf8.ValidString(value) && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// isPairs wants key=value, with nothing between two commas allowed.
func isPairs(value string) bool {
	for _, pair := range strings.Split(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, text, found := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(text))
		if !found || err != nil || strings.TrimSpace(key) == "" || !utf8.ValidString(key+plain) {
			return false
		}
	}
	return true
}

// isHeaders wants pairs whose keys and values HTTP can carry.
func isHeaders(value string) bool {
	if !isPairs(value) {
		return false
	}
	for _, pair := range strings.Split(value, ",") {
		key, text, _ := strings.Cut(pair, "=")
		plain, _ := url.PathUnescape(text)
		if strings.ContainsFunc(strings.TrimSpace(key), isNoToken) || strings.ContainsFunc(strings.TrimSpace(plain), isControl) {
			return false
		}
	}
	return true
}

// isNoToken is by RFC 9110, section 5.6.2.
func isNoToken(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func isAuthorities(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && x509.NewCertPool().AppendCertsFromPEM(text)
}
