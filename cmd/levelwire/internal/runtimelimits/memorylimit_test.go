package runtimelimits

import (
	"testing"
	"testing/fstest"
)

func TestContainerLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64 // 0: none
	}{
		"another system": {},
		"version 2, in the group itself": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "268435456\n", "sys/fs/cgroup/a/memory.max": "max\n",
		}, 256 << 20},
		"version 2, in the group above": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n", "sys/fs/cgroup/a/memory.max": "536870912\n",
		}, 512 << 20},
		"version 2, the host's path in a container": {map[string]string{
			"proc/self/cgroup": "0::/../../kubepods/x\n", "sys/fs/cgroup/memory.max": "134217728\n",
		}, 128 << 20},
		"version 2, no limit": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"version 1": {map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/x\n9:memory:/docker/y\n", "sys/fs/cgroup/memory/docker/y/memory.limit_in_bytes": "134217728\n",
		}, 128 << 20},
		"version 1, no limit": {map[string]string{
			"proc/self/cgroup": "9:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		"nonsense": {map[string]string{"proc/self/cgroup": "memory\n0::/a\n", "sys/fs/cgroup/a/memory.max": "much\n"}, 0},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got, ok := containerLimit(root); ok != (c.want != 0) || ok && got != c.want {
			t.Errorf("%s: %d, %v, want %d", name, got, ok, c.want)
		}
	}
}
