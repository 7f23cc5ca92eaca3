package listen

import "math"

const (
	// reservedFiles of those that a process may open are not for connections of clients:
	// etcd's log and database need some, and so do connections to etcd and to webhooks.
	// etcd ends the process if it cannot open the next file of its log.
	reservedFiles = 1024
	// reservedShare of the files is reserved where the limit is low.
	reservedShare = 4
)

// DefaultLimit returns how many connections of clients this process may have; 0 means that
// there is no limit.
func DefaultLimit() int { return limitOf(openFilesLimit()) }

// limitOf is DefaultLimit for a process that may open so many files.
func limitOf(openFiles uint64) int {
	if openFiles == 0 || openFiles > math.MaxInt32 {
		return 0
	}
	return max(1, int(openFiles-min(openFiles/reservedShare, reservedFiles)))
}
