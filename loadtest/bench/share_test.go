// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const traces = `File: dispatcher
Type: cpu
Duration: 4s, Total samples = 100ms (2.50%)
-----------+-------------------------------------------------------
      60ms   internal/runtime/syscall/linux.Syscall6
             syscall.write
             internal/poll.(*FD).Write
             crypto/tls.(*Conn).Write
-----------+-------------------------------------------------------
      20ms   runtime.memmove
             github.com/valyala/fasthttp.(*Response).Write (inline)
             github.com/admission-dispatcher/dispatcher/internal/server.(*Server).Run.func1
-----------+-------------------------------------------------------
      10ms   memeqbody
             runtime.goexit
-----------+-------------------------------------------------------
      10ms   slices.SortFunc[go.shape.[]k8s.io/apiserver/x.T]
             github.com/admission-dispatcher/dispatcher/match.(*Table).Match
-----------+-------------------------------------------------------
`

func TestProfile(t *testing.T) {
	stacks, err := parseStacks(traces)
	if err != nil {
		t.Fatal(err)
	}
	got := newProfile("a load", stacks)
	want := &profile{
		Load: "a load", Milliseconds: 100,
		Shares: []share{
			{"system calls: network, epoll, futex", 60}, {"HTTP and connections", 20},
			{"matching, calling and deciding", 10}, {"other", 10},
		},
		Packages: []share{{"internal/runtime/syscall/linux", 60}, {"runtime", 20}, {"assembler", 10}, {"slices", 10}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var page bytes.Buffer
	got.writeMarkdown(&page)
	if !strings.Contains(page.String(), "a load, 0.1 s of CPU") || !strings.Contains(page.String(), "\n| HTTP and connections | 20.0 % |\n") {
		t.Errorf("%s", &page)
	}
	if _, err := parseStacks("File: dispatcher\n"); err == nil {
		t.Error("found something in an empty profile")
	}
}

func TestMetric(t *testing.T) {
	const text = "# TYPE go_a gauge\ngo_a_b 2\ngo_a 1.5e+07\n"
	if got, err := metric([]byte(text), "go_a"); err != nil || got != 1.5e7 {
		t.Error(got, err)
	}
	if _, err := metric([]byte(text), "go"); err == nil {
		t.Error("found a metric that is not there")
	}
}
