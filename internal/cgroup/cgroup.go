// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads what the kernel allows the process's control group.
package cgroup

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// unlimited is what version 1 says where there is no limit, give or take a page.
const unlimited = 1 << 62

// MemoryLimit returns the smallest limit in bytes that holds for the process: of its
// control group, or of one around it. root is the root of the file system. It returns
// false where there is no limit, or none that can be read.
//
// Both versions are read. In a container with a namespace of its own the group is "/";
// in one without, the path is the host's and is not mounted, but the container's group
// is, at the top. Going upwards finds either.
func MemoryLimit(root fs.FS) (bytes int64, limited bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	bytes = unlimited
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case controllers == "":
			bytes = min(bytes, smallest(root, "sys/fs/cgroup", group, "memory.max"))
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			bytes = min(bytes, smallest(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	if bytes >= unlimited {
		return 0, false
	}
	return bytes, true
}

// smallest returns the smallest limit of a group and those around it.
func smallest(root fs.FS, mount, group, file string) int64 {
	least := int64(unlimited)
	// Clean also takes away what would lead out of the mount: "/../pod" is a group
	// outside of the namespace.
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		least = min(least, limit(root, path.Join(mount, group, file)))
		if group == "/" {
			return least
		}
	}
}

// limit returns what one file says: "max" is no limit, as is a file that is not there.
func limit(root fs.FS, file string) int64 {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return unlimited
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bytes <= 0 {
		return unlimited
	}
	return bytes
}
