package runtimelimits

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitShare is which part, in percent, of the container's memory the Go runtime may use:
// the rest is for pages of files and of the kernel.
const limitShare = 90

// ObeyMemoryLimit tells the Go runtime the limit that the container has set, unless the
// user has set GOMEMLIMIT. Near it the runtime collects garbage earlier, and the server keeps
// less history: it is slower before it is killed. It belongs to the command, as BoundGarbage
// does.
func ObeyMemoryLimit() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit, ok := containerLimit(os.DirFS("/")); ok {
		debug.SetMemoryLimit(limit / 100 * limitShare)
	}
}

// containerLimit returns the least memory limit of the control groups that the process is
// in: memory.max of version 2 (cgroups(7)), memory.limit_in_bytes of version 1. root is the
// system's root directory.
func containerLimit(root fs.FS) (limit int64, ok bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false // another system
	}
	limit = math.MaxInt64
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			limit = min(limit, leastLimit(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case parts[1] == "memory":
			limit = min(limit, leastLimit(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return limit, limit < unlimited
}

// unlimited is more than any machine has. Version 1 writes almost 1<<63 for no limit.
const unlimited = 1 << 60

// leastLimit returns the least limit of a group and the groups that it is in. In a container
// the path may be that of the host, which is not visible there: then what is mounted is the
// container's own group.
func leastLimit(root fs.FS, mount, group, file string) int64 {
	limit := int64(math.MaxInt64)
	for dir := path.Join(mount, path.Join("/", group)); ; dir = path.Dir(dir) {
		if text, err := fs.ReadFile(root, path.Join(dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // not "max"
				limit = min(limit, n)
			}
		}
		if len(dir) <= len(mount) {
			return limit
		}
	}
}
