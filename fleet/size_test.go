// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Fleet that reads a file.
type world struct {
	t    *testing.T
	path string
	log  bytes.Buffer
}

func newWorld(t *testing.T) *world {
	return &world{t: t, path: filepath.Join(t.TempDir(), fleet.FileName)}
}

func (w *world) write(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) settings(replicas int) fleet.Settings {
	return fleet.Settings{Replicas: replicas, File: w.path, Logger: slog.New(slog.NewTextHandler(&w.log, nil))}
}

// follow runs a Fleet, and returns its changes after each step, two seconds apart.
func (w *world) follow(replicas int, steps ...func()) (f *fleet.Fleet, all []fleet.Change) {
	w.t.Helper()
	f = fleet.New(w.settings(replicas))
	ctx, stop := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx, func(c fleet.Change) { all = append(all, c) }) })
	for _, step := range steps {
		step()
		<-time.After(fleet.DefaultInterval)
		synctest.Wait()
	}
	stop()
	running.Wait()
	return f, all
}

func TestSize(t *testing.T) {
	t.Run("nobody says", func(t *testing.T) {
		if n := fleet.New(fleet.Settings{}).Size(); n != 1 {
			t.Errorf("%d", n)
		}
	})
	t.Run("the configuration says", func(t *testing.T) {
		if n := fleet.New(fleet.Settings{Replicas: 7}).Size(); n != 7 {
			t.Errorf("%d", n)
		}
	})
	t.Run("the file goes before the configuration", func(t *testing.T) {
		w := newWorld(t)
		w.write(string(fleet.Encode(5)))
		if n := fleet.New(w.settings(7)).Size(); n != 5 {
			t.Errorf("%d", n)
		}
	})
	t.Run("until there is one, the configuration does", func(t *testing.T) {
		w := newWorld(t)
		if n := fleet.New(w.settings(7)).Size(); n != 7 || !strings.Contains(w.log.String(), "no such file") {
			t.Errorf("%d, %s", n, &w.log)
		}
	})
}

// What is read first says how many replicas have been there all along; then they join and
// leave. A file that goes leaves the last number.
func TestSizeFollowsTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		say := func(n int) func() { return func() { w.write(string(fleet.Encode(n))) } }
		f, changes := w.follow(0, func() {}, say(3), say(3), say(6), say(4), say(5), func() {
			if err := os.Remove(w.path); err != nil {
				t.Error(err)
			}
		})
		want := []fleet.Change{{Size: 3}, {Size: 6, Joined: true}, {Size: 4}, {Size: 5, Joined: true}}
		if fmt.Sprint(changes) != fmt.Sprint(want) || f.Size() != 5 {
			t.Errorf("%+v, now %d; want %+v", changes, f.Size(), want)
		}
	})
}

// A file that says what cannot be changes nothing, and is logged once.
func TestPoisonedFile(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":         "",
		"no JSON":         "six",
		"no number":       `{"format":1}`,
		"none":            `{"format":1,"replicas":0}`,
		"below none":      `{"format":1,"replicas":-3}`,
		"too many":        `{"format":1,"replicas":1001}`,
		"far too many":    `{"format":1,"replicas":99999999999999999999}`,
		"a half":          `{"format":1,"replicas":2.5}`,
		"a word":          `{"format":1,"replicas":"6"}`,
		"another format":  `{"format":2,"replicas":6}`,
		"no format":       `{"replicas":6}`,
		"a list":          `[6]`,
		"null":            `null`,
		"more than it is": `{"format":1,"replicas":6}` + strings.Repeat(" ", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.write(string(fleet.Encode(4)))
				f, changes := w.follow(0, func() { w.write(text) }, func() {}, func() {})
				if f.Size() != 4 || len(changes) > 0 {
					t.Errorf("%d replicas, %+v", f.Size(), changes)
				}
				if n := strings.Count(w.log.String(), "number of replicas is not known"); n != 1 {
					t.Errorf("it is logged %d times: %s", n, &w.log)
				}
			})
		})
	}
}

// What is no file is not waited for.
func TestSizeOfADirectory(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(w.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if n := fleet.New(w.settings(0)).Size(); n != 1 || !strings.Contains(w.log.String(), "is not a regular file") {
		t.Errorf("%d, %s", n, &w.log)
	}
}

func TestEncodeIsBounded(t *testing.T) {
	for replicas, want := range map[int]int{-1: 1, 0: 1, 1: 1, 1000: 1000, 1001: 1000} {
		w := newWorld(t)
		w.write(string(fleet.Encode(replicas)))
		if n := fleet.New(w.settings(3)).Size(); n != want {
			t.Errorf("%d replicas are read as %d", replicas, n)
		}
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct{ limit, size, slack, least, want int }{
		{256, 1, 1, 1, 256},
		{256, 3, 1, 1, 86},
		{256, 256, 1, 1, 1},
		{256, 1000, 1, 1, 1},
		{512, 1, 2, 16, 512},
		{512, 10, 2, 16, 103},
		{512, 200, 2, 16, 16},
		{8, 200, 2, 16, 8}, // never more than all together
	} {
		if got := fleet.Share(c.limit, c.size, c.slack, c.least); got != c.want {
			t.Errorf("Share(%d, %d, %d, %d) = %d, want %d", c.limit, c.size, c.slack, c.least, got, c.want)
		}
	}
}

// No number of replicas takes all from one, and together they have what is there for all,
// but for what rounding adds.
func TestShareHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, size := rapid.IntRange(1, 1<<20).Draw(t, "limit"), rapid.IntRange(1, fleet.MaxReplicas).Draw(t, "size")
		share := fleet.Share(limit, size, 1, 1)
		if share < 1 || share > limit || share*size < limit || share > 1 && (share-1)*size >= limit {
			t.Errorf("%d of %d for each of %d", share, limit, size)
		}
	})
}
