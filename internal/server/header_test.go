// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
)

func TestPath(t *testing.T) {
	w := newWorld(t, nil)
	for _, target := range []string{
		"/", "/livez", "/readyz", "/metrics", "/debug/pprof/", "/v1/clusters", "/v1/clusters/a", "/v1/clusters/a/",
		"/v1/clusters/a/validate/", "/v1/clusters/a/validate/x", "/v1/clusters/a/Validate", "/v1/clusters//validate",
		"/v1/clusters/a/../b/validate", "/v1/clusters/b/../a/validate", "/v1/clusters/./a/validate",
		"//v1/clusters/a/validate", "/v1//clusters/a/validate", "/v1/clusters/a//validate", "/x/../v1/clusters/a/validate",
		"/v1/clusters/a%2fvalidate", "/v1/clusters/%61/validate", "/v1/clusters/a%2f..%2fb/validate", "/v1/clusters/a\\validate",
		"/v1/clusters/a;x/validate", "/v1/clusters/A/validate", "/v1/clusters/a/validate#", "/v1/clusters/a/validate;x",
		"https://dispatcher/v1/clusters/a/validate", "*",
		"/v1/clusters/a/validate/", "/v1/clusters/a/validate/only", "/v1/clusters/a/validate/only.", "/v1/clusters/a/validate/only.short",
		"/v1/clusters/a/validate/only.0123456789.0123456789", "/v1/clusters/a/validate/only.abcdefghij.0123456789",
		"/v1/clusters/a/validate/only.0123456789/x", "/v1/clusters/a/validate/all.0123456789", "/v1/clusters/a/validate/only.012345678z",
	} {
		t.Run("A6 "+target, func(t *testing.T) {
			w.isRefused(message{target: target, body: review("1")}, http.StatusNotFound)
		})
	}
	t.Run("A6 dots as a cluster", func(t *testing.T) {
		w.isRefused(message{target: "/v1/clusters/../validate", body: review("1")}, http.StatusForbidden)
	})
	w.judge.none(t)
	t.Run("A6a paths", func(t *testing.T) {
		c := w.dial()
		for _, tt := range []struct {
			target, path string
			outdated     bool
		}{
			{"/v1/clusters/a/validate", "", false},
			{"/v1/clusters/a/validate/only.0123456789?timeout=3s", "only.0123456789", true},
			{"/v1/clusters/a/validate/not.0123456789.abcdefghij", "not.0123456789.abcdefghij", true},
		} {
			c.isAllowed(c.ask(message{target: tt.target, body: review("1")}), "1")
			if got := w.judge.last(t); got.path != tt.path || got.outdated != tt.outdated {
				t.Errorf("%s: %+v", tt.target, got)
			}
		}
		if lines := strings.Join(w.logs.lines(), "\n"); strings.Count(lines, "applies an older registration") != 2 {
			t.Errorf("the log says %s", lines)
		}
		w.judge.forget()
	})
	t.Run("phases", func(t *testing.T) {
		c := w.dial()
		c.isAllowed(c.ask(message{target: "/v1/clusters/a/validate", body: review("1")}), "1")
		c.isAllowed(c.ask(message{target: "/v1/clusters/a/mutate?other=1&timeout=3s", body: review("2")}), "2")
		seen := w.judge.decisions()
		if seen[0].phase != chain.Validating || seen[1].phase != chain.Mutating {
			t.Errorf("phases %v, %v", seen[0].phase, seen[1].phase)
		}
	})
}

func TestMethod(t *testing.T) {
	w := newWorld(t, nil)
	for _, method := range []string{"GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "PRI", "X"} {
		t.Run("A7 "+method, func(t *testing.T) {
			got := w.isRefused(message{method: method, body: review("1")}, http.StatusMethodNotAllowed)
			if allow := got.header.Get("Allow"); allow != "POST" {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
	w.judge.none(t)
}

func TestContentType(t *testing.T) {
	w := newWorld(t, nil)
	ask := func(contentType string) message {
		m := message{body: review("1")}
		m.headers = fmt.Sprintf("%sContent-Length: %d\r\n", contentType, len(m.body))
		return m
	}
	for _, ct := range []string{"", "application/yaml", "text/plain", "application/json; charset=utf-16", "application/json; charset=latin1",
		"application/json;;;=", "application/jsonx", "multipart/form-data; boundary=x", "application/json, application/yaml"} {
		t.Run("A8 "+ct, func(t *testing.T) {
			header := "Content-Type: " + ct + "\r\n"
			if ct == "" {
				header = ""
			}
			w.isRefused(ask(header), http.StatusUnsupportedMediaType)
		})
	}
	w.judge.none(t)
	for _, ct := range []string{"application/json; charset=UTF-8", `application/json;charset="utf-8"`, "Application/JSON", "application/json; x=y"} {
		t.Run("A8 accepted "+ct, func(t *testing.T) {
			c := w.dial()
			c.isAllowed(c.ask(ask("Content-Type: "+ct+"\r\n")), "1")
		})
	}
}

func TestExpect(t *testing.T) {
	w := newWorld(t, nil)
	head, body, _ := strings.Cut(message{extra: "Expect: 100-continue\r\n", body: review("1")}.String(), "\r\n\r\n")
	t.Run("A17 100-continue", func(t *testing.T) {
		c := w.dial()
		c.isAllowed(c.ask(good("0")), "0")
		c.send(text(head + "\r\n\r\n"))
		line, err := c.in.ReadString('\n')
		if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		if line, err = c.in.ReadString('\n'); err != nil || line != "\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		c.isAllowed(c.ask(text(body)), "1")
		c.isAllowed(c.ask(good("2")), "2")
	})
	for _, value := range []string{"200-ok", "100-continue, x", "x\r\nExpect: 100-continue", "100-continue\r\nExpect: x", ""} {
		t.Run("A17 "+value, func(t *testing.T) {
			w.isRefused(message{extra: "Expect: " + value + "\r\n", body: review("1")}, http.StatusExpectationFailed)
		})
	}
}

// The longest URL comes with the longest headers.
func TestLongestHead(t *testing.T) {
	w := newWorld(t, nil)
	target, m := "/v1/clusters/a/validate?x=", good("1")
	m.target = target + strings.Repeat("x", 8<<10-len(target))
	sent := m.String()
	headers := sent[strings.Index(sent, "\r\n")+2 : strings.Index(sent, "\r\n\r\n")+4]
	m.extra = "X: " + strings.Repeat("y", 32<<10-len(headers)-len("X: \r\n")) + "\r\n"
	c := w.dial()
	c.isAllowed(c.ask(m), "1")
}
