// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/metrics"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

// TestPage keeps docs/metrics.md as the code says.
func TestPage(t *testing.T) {
	const file = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(file, []byte(metrics.Page()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(metrics.Page(), string(text)); diff != "" {
		t.Errorf("docs/metrics.md is not current; go test ./internal/metrics -run Page -update (-want +got):\n%s", diff)
	}
}
