// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io/fs"
	"log/slog"
	"runtime/debug"

	"github.com/admission-dispatcher/dispatcher/internal/cgroup"
)

// memoryShare is how much of the control group's memory the Go runtime may use, in
// percent. The rest is for what it does not count: the binary's own pages, the buffers
// of sockets, and the time that a collection takes.
const memoryShare = 90

// limitMemory has Go collect garbage before the kernel kills the process: at 90 % of what
// the control group may use, unless GOMEMLIMIT says otherwise. The runtime reads the
// group's processors by itself, but not its memory.
func limitMemory(root fs.FS, getenv func(string) string, log *slog.Logger) {
	if getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, limited := cgroup.MemoryLimit(root)
	if !limited {
		return
	}
	bytes := limit / 100 * memoryShare
	debug.SetMemoryLimit(bytes)
	log.Info("memory is limited", "cgroup", limit, "GOMEMLIMIT", bytes)
}
