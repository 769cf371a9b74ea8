// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/dashboards"
)

var update = flag.Bool("update", false, "rewrite the dashboards' JSON")

// TestFiles keeps the JSON as the code says, and says that there is no other.
func TestFiles(t *testing.T) {
	var want []string
	for _, d := range dashboards.All() {
		file := strings.TrimPrefix(d.UID, "dispatcher-") + ".json"
		want = append(want, file)
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(text), read(t, file)); diff != "" {
			t.Errorf("%s is not current; go test ./dashboards -run Files -update (-want +got):\n%s", file, diff)
		}
	}
	if got := files(t, "*.json"); len(got) != len(want) {
		t.Errorf("files %q, want %q", got, want)
	}
}

// TestUnique wants ids that Grafana can tell apart, and links that lead somewhere.
func TestUnique(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range dashboards.All() {
		if uids[d.UID] {
			t.Errorf("uid %s stands twice", d.UID)
		}
		uids[d.UID] = true
	}
	for _, d := range dashboards.All() {
		titles := map[string]bool{}
		for _, p := range d.Panels {
			if titles[p.Title] {
				t.Errorf("%s: two panels %q", d.UID, p.Title)
			}
			titles[p.Title] = true
			if p.Next == d.UID || p.Next != "" && !uids[p.Next] {
				t.Errorf("%s, %s: leads to %q", d.UID, p.Title, p.Next)
			}
			if p.Unit == "" || p.About == "" || len(p.Queries) == 0 {
				t.Errorf("%s, %s: lacks a unit, a description or a query", d.UID, p.Title)
			}
		}
	}
}
