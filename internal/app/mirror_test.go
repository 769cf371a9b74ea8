// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// A process that reads what a mirror keeps serves it, and shows what the mirror says. One
// whose mirror says nothing says that.
func TestMirror(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"cluster.yaml", "webhooks.yaml"} {
		w.move("registry/"+name, "mirror/current/"+name)
	}
	p := w.startFrom(strings.Replace(fileConfig, "directory: registry", "mirror: mirror", 1) + "lameDuck: 0s\n")
	if _, err := ask(w.clientOf(p.awaitReady())); err != nil {
		t.Fatal(err)
	}
	s, err := p.status(http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	if s.Mirror == nil || !strings.HasPrefix(s.Mirror.Error, "its status cannot be read") {
		t.Errorf("without a status the mirror is %+v", s.Mirror)
	}
	w.write("mirror/status.json", []byte(`{"generation": "abc", "since": "2026-03-14T12:00:00Z", "heard": "2026-03-14T12:00:00Z", "objects": {"Cluster": 1}, "refusedCount": 3}`))
	if s, err = p.status(http.DefaultClient); err != nil {
		t.Fatal(err)
	}
	if m := s.Mirror; m == nil || m.Generation != "abc" || m.RefusedCount != 3 || m.Error != "" || m.Refused == nil {
		t.Errorf("the mirror is %+v", m)
	}
	if got := p.scrape(); !strings.Contains(got, `dispatcher_mirror_info{generation="abc"} 1`) {
		t.Errorf("no metric of the mirror:\n%s", got)
	}
}
