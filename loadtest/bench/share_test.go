// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var record = flag.String("record", "", "keep of what go tool pprof -traces has printed into this file a stack for each rule")

// recorded are stacks of the dispatcher under load, one for each rule.
const recorded = "testdata/stacks.txt"

// Each rule is needed by something that runs in an admission.
func TestRules(t *testing.T) {
	if *record != "" {
		keepStacks(t, read(*record))
	}
	stacks, err := parseStacks(read(recorded))
	if err != nil {
		t.Fatal(err)
	}
	all := rules()
	used := make([]bool, len(all))
	for i := range stacks {
		_, which := stacks[i].componentOf(all)
		if which < 0 {
			t.Errorf("no rule is about the stack %v", stacks[i].frames)
			continue
		}
		used[which] = true
	}
	for i, r := range all {
		if !used[i] {
			t.Errorf("the rule %q of %s is about nothing in %s: drop it, or record a profile in which it is (-record)", r.prefix, r.component, recorded)
		}
	}
	for _, c := range components() {
		if c != rest && !strings.Contains(fmt.Sprint(all), "{"+string(c)+" ") {
			t.Errorf("no rule is about %s", c)
		}
	}
}

// keepStacks writes the shortest stack for each rule, without what called it.
func keepStacks(t *testing.T, traces string) {
	t.Helper()
	stacks, err := parseStacks(traces)
	if err != nil {
		t.Fatal(err)
	}
	all := rules()
	best := make([][]string, len(all))
	for i := range stacks {
		_, which := stacks[i].componentOf(all)
		if which < 0 {
			continue
		}
		if frames := stacks[i].frames; best[which] == nil || len(frames) < len(best[which]) {
			best[which] = frames
		}
	}
	const line = "-----------+-------------------------------------------------------\n"
	var out strings.Builder
	out.WriteString("Type: cpu\n")
	for _, frames := range best {
		if frames != nil {
			fmt.Fprintf(&out, "%s      10ms   %s\n", line, strings.Join(frames, "\n             "))
		}
	}
	if err := os.WriteFile(recorded, []byte(out.String()+line), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A package of the product is in a component, or somebody has decided that it is
// in none.
func TestPackagesHaveRules(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ours+"cmd/dispatcher").Output()
	if err != nil {
		t.Fatal(err)
	}
	excused := uncounted()
	for line := range strings.Lines(string(out)) {
		name, isOurs := strings.CutPrefix(strings.TrimSpace(line), ours)
		if !isOurs {
			continue
		}
		_, isExcused := excused[name]
		delete(excused, name)
		if hasRule := isRuled(name); hasRule == isExcused {
			t.Errorf("package %s has a rule in component.go: %t, and is in uncounted(): %t", name, hasRule, isExcused)
		}
	}
	for name := range excused {
		t.Errorf("package %s is in uncounted(), but not in the product", name)
	}
}

// isRuled reports whether a rule is about the package or a part of it.
func isRuled(name string) bool {
	for _, r := range rules() {
		if strings.HasPrefix(r.prefix, ours+name+".") {
			return true
		}
	}
	return false
}

const traces = `File: dispatcher
Type: cpu
Duration: 4s, Total samples = 100ms (2.50%)
-----------+-------------------------------------------------------
      40ms   internal/runtime/syscall/linux.Syscall6
             syscall.Syscall
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
      10ms   runtime.memmove
             github.com/admission-dispatcher/dispatcher/codec/json.(*Scanner).Skip
             github.com/admission-dispatcher/dispatcher/codec.Verify
             github.com/admission-dispatcher/dispatcher/webhook.(*Message).Judge
-----------+-------------------------------------------------------
      20ms   slices.SortFunc[go.shape.[]k8s.io/apiserver/x.T]
             github.com/admission-dispatcher/dispatcher/match.(*conditions).evaluate
             github.com/admission-dispatcher/dispatcher/match.(*Matcher).Match
-----------+-------------------------------------------------------
`

// What works for others is theirs, the innermost function that has a rule decides,
// and what none is about is shown by name.
func TestDivide(t *testing.T) {
	stacks, err := parseStacks(traces)
	if err != nil {
		t.Fatal(err)
	}
	shares, unruled := divide(stacks)
	got := map[string]float64{}
	for _, s := range shares {
		if s.Percent > 0 {
			got[s.Name] = s.Percent
		}
	}
	want := map[string]float64{string(kernelWrite): 40, string(handling): 20, string(verify): 10, string(conditions): 20, string(rest): 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]share{{"memeqbody", 10}}, unruled); diff != "" {
		t.Error(diff)
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
