// SPDX-License-Identifier: Apache-2.0

package decisionlog_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/match"
)

// The page has every reason that a line may have.
func TestReasonsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| reason | why the webhook was not called |\n")
	if !ok {
		t.Fatal("docs/operations.md has no table of reasons")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var got, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, row[1])
	}
	for r := match.Matched + 1; r < match.Reasons; r++ {
		want = append(want, r.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operations.md does not list what the code has (-code +page):\n%s", diff)
	}
}
