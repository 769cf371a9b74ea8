// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/admission-dispatcher/dispatcher/conformance/pair"
)

// TestTable holds README.md to the table of meant differences.
func TestTable(t *testing.T) {
	var want bytes.Buffer
	for _, row := range pair.Table {
		fmt.Fprintf(&want, "| %s | %s | %s |\n", row.ID, row.What, row.Why)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, want.Bytes()) {
		t.Errorf("README.md does not have the table of pair.Table:\n%s", want.Bytes())
	}
}
