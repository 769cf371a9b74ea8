// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const events = `{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"chatter\n"}
{"Action":"pass","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestLater","Output":"more chatter\n"}
{"Action":"output","Package":"a","Test":"TestLater","Output":"    a_test.go:7: no network: try later\n"}
{"Action":"skip","Package":"a","Test":"TestLater"}
{"Action":"output","Package":"a","Output":"ok  \ta\t0.1s\n"}
{"Action":"pass","Package":"a"}
{"Action":"output","Package":"b","Test":"TestBad","Output":"b_test.go:1: wrong\n"}
{"Action":"fail","Package":"b","Test":"TestBad"}
{"Action":"output","Package":"b","Output":"FAIL\tb\t0.1s\n"}
{"Action":"fail","Package":"b"}
go: downloading something
{"Action":"build-output","ImportPath":"c","Output":"c.go:1: undefined: x\n"}
{"Action":"output","Package":"c","Output":"FAIL\tc [build failed]\n"}
{"Action":"fail","Package":"c"}
{"Action":"output","Package":"d","Test":"TestPanics","Output":"panic: oh\n"}
{"Action":"fail","Package":"d"}
`

func TestRead(t *testing.T) {
	var out strings.Builder
	got, err := read(strings.NewReader(events), &out)
	if want := (counts{passed: 1, failed: 3, skipped: 1}); err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	for _, shown := range []string{"ok  \ta", "wrong", "undefined: x", "panic: oh", "downloading", "skipped: a TestLater: no network: try later\n"} {
		if !strings.Contains(out.String(), shown) {
			t.Errorf("does not show %q", shown)
		}
	}
	for _, hidden := range []string{"chatter"} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("shows %q", hidden)
		}
	}
}

func TestClosingLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	for _, c := range []struct {
		add  counts
		want string
		exit int
	}{
		{counts{passed: 3}, "3 passed, 0 failed\n", 0},
		{counts{passed: 1, skipped: 2}, "4 passed, 0 failed, 2 skipped\n", 0},
		{counts{failed: 1}, "4 passed, 1 failed, 2 skipped\n", 1},
	} {
		if err := c.add.appendTo(file); err != nil {
			t.Fatal(err)
		}
		var out, problems strings.Builder
		if exit := run([]string{"-sum", file}, &out, &problems); exit != c.exit || out.String() != c.want {
			t.Errorf("exit %d, printed %q%s, want %d, %q", exit, out.String(), problems.String(), c.exit, c.want)
		}
	}
}

func TestCommandThatFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	for name, command := range map[string][]string{
		"to start": {filepath.Join(t.TempDir(), "missing")},
		"later":    {"go", "no-such-subcommand"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, problems strings.Builder
			if exit := run(append([]string{"-to", file}, command...), &out, &problems); exit != 1 {
				t.Errorf("exit %d", exit)
			}
		})
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "0 1 0\n0 1 0\n" {
		t.Errorf("counted %q, %v", text, err)
	}
}
