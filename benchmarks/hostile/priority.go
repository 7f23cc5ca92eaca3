package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// giveWay lowers the priority of this process. Linux has one for each thread, and a new thread
// has that of the one that made it, so it is lowered until no thread is left that has the
// former one.
func giveWay() error {
	const lower = 10
	mine, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	niceness := min(20-mine+lower, 19)
	for {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil { // not Linux: the process has one
			return unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
		}
		changed := false
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			priority, err := unix.Getpriority(unix.PRIO_PROCESS, id)
			switch {
			case err == unix.ESRCH: // it has ended
				continue
			case err != nil:
				return err
			case 20-priority >= niceness: // Linux returns 20 less the niceness
				continue
			}
			if err := unix.Setpriority(unix.PRIO_PROCESS, id, niceness); err != nil && err != unix.ESRCH {
				return err
			}
			changed = true
		}
		if !changed {
			return nil
		}
	}
}
