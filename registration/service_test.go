// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
)

func TestParseService(t *testing.T) {
	for text, want := range map[string]Service{
		"kube-system/dispatcher-forward":      {"kube-system", "dispatcher-forward", 443},
		"kube-system/dispatcher-forward:8443": {"kube-system", "dispatcher-forward", 8443},
		"a/b:65535":                           {"a", "b", 65535},
	} {
		if got, err := ParseService(text); err != nil || *got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"dispatcher-forward": "there is no /",
		"/b":                 "the namespace",
		"A/b":                "the namespace",
		"a/":                 "the name",
		"a/1b":               "the name",
		"a/b/c":              "the name",
		"a/b:":               "the port",
		"a/b:0":              "the port",
		"a/b:65536":          "the port",
		"a/b:4294967739":     "the port",
		"a/b:https":          "the port",
	} {
		if got, err := ParseService(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}
