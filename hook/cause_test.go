// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// Causes has every constant of the type, in order.
func TestCauses(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "cause.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []hook.Cause
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != "Cause" {
			t.Fatalf("%s is not of type Cause", spec.Names[0])
		}
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, hook.Cause(word))
		return false
	})
	if diff := cmp.Diff(want, hook.Causes()); diff != "" {
		t.Errorf("the constants are not the list (-constants +list):\n%s", diff)
	}
}

// The pages have each cause with its code.
func TestCausesAreDocumented(t *testing.T) {
	contract, semantics := page(t, "docs/contract.md"), page(t, "docs/semantics.md")
	_, list, ok := strings.Cut(contract, "cause to code: ")
	if !ok {
		t.Fatal("docs/contract.md has no list of causes")
	}
	list, _, _ = strings.Cut(list, "\n")
	codes := map[hook.Cause]int{}
	for group := range strings.SplitSeq(list, ";") {
		code, _ := strconv.Atoi(regexp.MustCompile(`\b\d{3}\b`).FindString(group))
		for _, word := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(group, -1) {
			codes[hook.Cause(word[1])] = code
		}
	}
	want := map[hook.Cause]int{}
	for _, c := range hook.Causes() {
		want[c] = int(c.Code())
		if !strings.Contains(semantics, "`"+string(c)+"`") {
			t.Errorf("docs/semantics.md leaves out %s", c)
		}
	}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("docs/contract.md does not say what the code does (-code +page):\n%s", diff)
	}
}

// The judge of the conformance tests shares no code with the dispatcher, and knows the
// causes of denials by their words. A webhook's own denial has none.
func TestCausesOfTheConformanceTests(t *testing.T) {
	named := regexp.MustCompile(`\n\tcause\w+ += "(\w+)"`).FindAllStringSubmatch(page(t, "conformance/pair/denial.go"), -1)
	if len(named) < 10 {
		t.Errorf("it names %d", len(named))
	}
	for _, word := range named {
		if word[1] != "Denied" && !slices.Contains(hook.Causes(), hook.Cause(word[1])) {
			t.Errorf("there is no cause %q", word[1])
		}
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
