//go:build unix

package listen

import "golang.org/x/sys/unix"

// openFilesLimit returns how many files and connections this process may have open; 0:
// that is not known, or there is no limit.
func openFilesLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:gosec,unconvert // The types differ among systems.
}
