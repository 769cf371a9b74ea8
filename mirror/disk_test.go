// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"os"
	"testing"
	"time"
)

// A generation that is not what its name says is not what was accepted.
func TestBrokenGeneration(t *testing.T) {
	d := disk{t.TempDir()}
	o := newObject("Cluster/a", time.Unix(1, 0), map[string][]byte{"cluster.a.json": []byte("{}"), "files/key": []byte("secret")})
	g := &generation{objects: map[string]*object{o.key: o}, summary: summary{Kinds: map[string]int{"Cluster": 1}}}
	g.hash = hashOf(filesOf(sorted(g.objects)))
	if err := d.write(g); err != nil {
		t.Fatal(err)
	}
	if err := d.swap(g.hash); err != nil || d.current() != g.hash {
		t.Fatal(err, d.current())
	}
	read, err := d.read(g.hash)
	if err != nil || read.objects["Cluster/a"].hash != o.hash || read.summary.Kinds["Cluster"] != 1 {
		t.Fatalf("%+v, %v", read, err)
	}
	if info, err := os.Stat(d.at(currentLink, "files", "key")); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("%v, %v: others may read a secret", info.Mode(), err)
	}
	for _, name := range []string{"cluster.a.json", "files/key", indexFile} {
		before, err := os.ReadFile(d.at(currentLink, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, broken := range []func() error{
			func() error { return os.WriteFile(d.at(currentLink, name), []byte(`{"format": 1}`), 0o600) },
			func() error { return os.Remove(d.at(currentLink, name)) },
		} {
			if err := broken(); err != nil {
				t.Fatal(err)
			}
			if g, err := d.read(g.hash); err == nil {
				t.Errorf("without %s it is %+v", name, g)
			}
		}
		if err := os.WriteFile(d.at(currentLink, name), before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.clean()
	if entries, err := os.ReadDir(d.path); err != nil || len(entries) != 1 { // the link
		t.Error(entries, err)
	}
}
