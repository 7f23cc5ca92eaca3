//go:build unix

package diskreserve

import "golang.org/x/sys/unix"

// Free returns how many bytes of a folder's disk this process may still use.
func Free(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:gosec,unconvert // The types differ among systems.
}
