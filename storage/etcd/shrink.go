package etcd

import (
	"log/slog"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// A burst of writes leaves a database whose pages are free after the next compactions,
// and a file as large as before. The member gives that back when it has not been used for
// so long that the next compactions will not need it either. Nothing can be read or written
// while a database is defragmented, at 150 to 300 MB a second of what is in use: only small
// ones are, which takes less than a slow commit may.
const (
	// shrinkFree is how many bytes must be free, and shrinkShare which part of the file.
	shrinkFree  = 64 << 20
	shrinkShare = 2
	// shrinkInUse is how many bytes may be in use.
	shrinkInUse = 64 << 20
	// shrinkAfter is for how long they must have been free: several compactions.
	shrinkAfter = 15 * time.Minute
	// shrinkInterval is how often the free bytes are looked at.
	shrinkInterval = 30 * time.Second
)

// shrinking remembers how much of a database has been free all the time. The zero value has
// not looked yet.
type shrinking struct {
	since time.Time // the bytes have been free since then; zero: they are not
}

// due reports whether so much of a database of size bytes has been free for so long that
// defragmenting it pays, given the bytes in use now.
func (s *shrinking) due(now time.Time, size, inUse int64) bool {
	if free := size - inUse; free < shrinkFree || free < size/shrinkShare || inUse > shrinkInUse {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < shrinkAfter {
		return false
	}
	s.since = time.Time{}
	return true
}

// shrink defragments the member's database if that pays.
func (s *shrinking) shrink(server *embed.Etcd, logger *slog.Logger) {
	database := server.Server.Backend()
	before := database.Size()
	if !s.due(time.Now(), before, database.SizeInUse()) {
		return
	}
	begin := time.Now()
	if err := database.Defrag(); err != nil {
		logger.Warn("etcd's database was not made smaller", "error", err)
		return
	}
	logger.Info("made etcd's database smaller", "before", before, "after", database.Size(), "took", time.Since(begin).Round(time.Millisecond))
}
