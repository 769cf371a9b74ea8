// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
)

// The path that is called is kube-apiserver's, whatever the URL is written like.
func TestPathsAreClientGos(t *testing.T) {
	check := func(t interface {
		Fatalf(format string, args ...any)
	}, path string) {
		target, err := NewTarget(TargetSpec{URL: "https://w.example.com" + path})
		if err != nil {
			return // not a URL, which neither takes
		}
		if got, want := called(target), clientGoPath(t, path); got != want {
			t.Fatalf("%q is called as %q, by kube-apiserver as %q", path, got, want)
		}
		if target.URL() != "https://w.example.com"+path {
			t.Fatalf("the URL is shown as %q", target.URL())
		}
	}
	for _, path := range []string{"", "/", "/a", "/a/", "/a//b", "/a/../b", "/../a", "/./a/.", "//a", "/a%2Fb", "/a%20b/", "/%2e%2e/a", "/é", "/a;b=c", "/a:b@c", "/a%3Fb", "/a%23b", "/%7Ea", "/a+b", "/a%2Bb"} {
		check(t, path)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"/", "//", ".", "..", "a", "b c", "é", "%2F", "%2f", "%25", "%20", "%3F", ";", ":", "@", "+", "~", "*", "'", "[", "validate"}), 0, 8).Draw(t, "parts")
		check(t, "/"+strings.Join(parts, ""))
	})
}

// Two spellings of a path are two Targets, as they are two for kube-apiserver's
// configuration, though they are called alike.
func TestPathsKeepTheirIdentity(t *testing.T) {
	if (TargetSpec{URL: "https://w.example.com/a"}).Identity() == (TargetSpec{URL: "https://w.example.com/a/"}).Identity() {
		t.Error("one identity")
	}
}

func called(t *Target) string {
	path, ok := strings.CutPrefix(t.head.line, "POST ")
	if !ok {
		return t.head.line
	}
	return strings.TrimSuffix(path, "?timeout=")
}

// clientGoPath is what k8s.io/apiserver's webhook.ClientManager has client-go call.
func clientGoPath(t interface {
	Fatalf(format string, args ...any)
}, path string) string {
	u, err := url.Parse("https://w.example.com" + path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	cfg := &rest.Config{Host: u.Scheme + "://" + u.Host, APIPath: u.Path}
	cfg.NegotiatedSerializer, cfg.GroupVersion = scheme.Codecs, &schema.GroupVersion{}
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		t.Fatalf("%v", err)
	}
	// As net/http sends it: the URL as a string, parsed again.
	sent, err := url.Parse(client.Post().URL().String())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return sent.EscapedPath()
}
