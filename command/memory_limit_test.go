// SPDX-License-Identifier: Apache-2.0

package command

import (
	"log/slog"
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

// The downward API gives a container all of its limit as GOMEMLIMIT, which is too late:
// nine tenths of it are taken by the process itself, where nobody has set another.
func TestMemoryIsLimited(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	limited := fstest.MapFS{
		"proc/self/cgroup":         {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("2147483648\n")},
	}
	for _, c := range []struct {
		name string
		root fstest.MapFS
		set  string
		want int64
	}{
		{"by the control group", limited, "", (2 << 30) / 100 * 90},
		{"GOMEMLIMIT stays", limited, "1GiB", math.MaxInt64},
		{"off stays", limited, "off", math.MaxInt64},
		{"no limit", fstest.MapFS{}, "", math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			debug.SetMemoryLimit(math.MaxInt64) // what the runtime itself makes of GOMEMLIMIT is its own
			limitMemory(c.root, func(name string) string {
				if name != "GOMEMLIMIT" {
					return ""
				}
				return c.set
			}, slog.New(slog.DiscardHandler))
			if got := debug.SetMemoryLimit(-1); got != c.want {
				t.Errorf("the limit is %d, not %d", got, c.want)
			}
		})
	}
}
