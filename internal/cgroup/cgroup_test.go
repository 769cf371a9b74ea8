// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"testing"
	"testing/fstest"

	"github.com/admission-dispatcher/dispatcher/internal/cgroup"
)

func TestMemoryLimit(t *testing.T) {
	const service = "0::/system.slice/dispatcher.service\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64 // 0: none
	}{
		{"no control groups", nil, 0},
		{"a container with a namespace of its own", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "2147483648\n",
		}, 2 << 30},
		{"no limit", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 0},
		{"a service", map[string]string{
			"proc/self/cgroup": service,
			"sys/fs/cgroup/system.slice/dispatcher.service/memory.max": "1073741824\n",
			"sys/fs/cgroup/system.slice/memory.max":                    "max\n",
		}, 1 << 30},
		{"a smaller limit around it", map[string]string{
			"proc/self/cgroup": service,
			"sys/fs/cgroup/system.slice/dispatcher.service/memory.max": "max\n",
			"sys/fs/cgroup/system.slice/memory.max":                    "1048576\n",
		}, 1 << 20},
		{"a larger limit around it", map[string]string{
			"proc/self/cgroup": service,
			"sys/fs/cgroup/system.slice/dispatcher.service/memory.max": "1048576\n",
			"sys/fs/cgroup/system.slice/memory.max":                    "1073741824\n",
		}, 1 << 20},
		{"version 1, in a container that sees the host's path", map[string]string{
			"proc/self/cgroup":                           "9:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n",
		}, 512 << 20},
		{"version 1 without a limit", map[string]string{
			"proc/self/cgroup":                           "4:blkio,memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		{"another controller's limit", map[string]string{
			"proc/self/cgroup":                           "4:memoryless:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n",
		}, 0},
		{"a group outside of the namespace", map[string]string{
			"proc/self/cgroup":             "0::/../other\n",
			"sys/fs/cgroup/memory.max":     "1073741824\n",
			"sys/fs/other/memory.max":      "1\n",
			"sys/fs/cgroup/pod/memory.max": "1\n",
		}, 1 << 30},
		{"what is no number", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "plenty\n",
		}, 0},
		{"nothing at all is no limit", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "0\n",
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, limited := cgroup.MemoryLimit(root)
			if got != c.want || limited != (c.want > 0) {
				t.Errorf("%d, %v; want %d", got, limited, c.want)
			}
		})
	}
}
