// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// planted is the variable that plants a bug in FuzzPlanted.
const planted = "PLANTED"

// FuzzPlanted has a check that fails by itself, or panics, if the environment says
// so: on a key twice in a document that is JSON all the same.
func FuzzPlanted(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,true,"x"]},"c":null}`), "text", false, uint64(0))
	f.Add([]byte(`{"d":"e"}`), "", true, uint64(1))
	bug := os.Getenv(planted)
	Run(f, func(t testing.TB, data []byte, text string, yes bool, number uint64) {
		cleaned := false
		t.Cleanup(func() { cleaned = true })
		t.Cleanup(func() {
			if cleaned {
				t.Error("the first cleanup is not the last")
			}
		})
		if yes && number%2 == 0 {
			t.Skip("nothing wrong")
		}
		if !json.Valid(data) || !bytes.Contains(data, []byte(`"b":`)) || bytes.Count(data, []byte(`"c":`)) != 2 || text == "text" {
			return
		}
		switch bug {
		case "fatal":
			t.Fatalf("twice in %s", data)
		case "panic":
			panic("twice")
		}
	})
}

// play runs FuzzPlanted of this test binary in dir.
func play(t *testing.T, dir, bug string, args ...string) (output string, passed bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"-test.run", "^FuzzPlanted$"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), planted+"="+bug)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// A bug is found within few inputs, and what has found it fails from then on, until
// the bug is gone.
func TestRun(t *testing.T) {
	for _, bug := range []string{"fatal", "panic"} {
		t.Run(bug, func(t *testing.T) {
			dir := t.TempDir()
			out, passed := play(t, dir, bug, "-inputs", "60000")
			kept, err := filepath.Glob(filepath.Join(dir, "testdata", "fuzz", "FuzzPlanted", "*"))
			if err != nil || passed || len(kept) == 0 || len(kept) > mostFailures+runtime.GOMAXPROCS(0) || !strings.Contains(out, filepath.Base(kept[0])) {
				t.Fatalf("the bug is found %v, and %q kept: %s", !passed, kept, out)
			}
			if bug == "panic" && !strings.Contains(out, "fuzz_test.go") {
				t.Errorf("nothing says where it panics: %s", out)
			}
			if out, passed := play(t, dir, bug, "-test.v"); passed || !strings.Contains(out, "--- FAIL: FuzzPlanted/"+filepath.Base(kept[0])) {
				t.Errorf("what was kept is not played: %s", out)
			}
			if out, passed := play(t, dir, ""); !passed {
				t.Errorf("it fails without the bug: %s", out)
			}
		})
	}
}

func TestRow(t *testing.T) {
	for _, inputs := range []string{"7", "1000"} {
		out, passed := play(t, t.TempDir(), "", "-inputs", inputs)
		rows := regexp.MustCompile(`(?m)^FuzzPlanted +(\d+) inputs .* 0 failures$`).FindAllStringSubmatch(out, -1)
		if !passed || len(rows) == 0 || rows[len(rows)-1][1] != inputs {
			t.Errorf("%s inputs: %s", inputs, out)
		}
	}
	if out, passed := play(t, t.TempDir(), ""); !passed || strings.Contains(out, "inputs") {
		t.Errorf("without -inputs it plays more than seeds: %s", out)
	}
}

// An input depends on the seed and on its number, not on who makes it.
func TestInput(t *testing.T) {
	corpus := [][]reflect.Value{
		{reflect.ValueOf([]byte(`{"a":1}`)), reflect.ValueOf("text"), reflect.ValueOf(true), reflect.ValueOf(uint64(1))},
		{reflect.ValueOf([]byte("")), reflect.ValueOf(""), reflect.ValueOf(false), reflect.ValueOf(uint64(2))},
	}
	made := func(seed, number uint64) string {
		text := ""
		for _, v := range (&run{corpus: corpus, seed: seed}).input(number) {
			text += fmt.Sprintf("%#v ", v.Interface())
		}
		return text
	}
	const numbers = 1000
	differs, distinct := 0, map[string]bool{}
	for i := range uint64(numbers) {
		first, again := made(1, i), made(1, i)
		if first != again {
			t.Fatalf("input %d is now %s, now %s", i, first, again)
		}
		if first != made(2, i) {
			differs++
		}
		distinct[first] = true
	}
	if differs < numbers*9/10 || len(distinct) < numbers*9/10 {
		t.Errorf("of %d inputs %d differ by seed, %d from each other", numbers, differs, len(distinct))
	}
	if string(corpus[0][0].Bytes()) != `{"a":1}` || len(corpus[1][0].Bytes()) != 0 {
		t.Error("the corpus is written")
	}
}
