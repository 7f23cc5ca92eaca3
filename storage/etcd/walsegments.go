package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// segmentBytes is the length of a segment, a file of the write-ahead log. etcd's
	// own length is 64 MB: the shorter a segment is, the sooner prepared ones are in
	// use.
	segmentBytes = 16 << 20
	// spareName is a segment that is being prepared, beside the log's folder.
	spareName = "next-segment"
	// commitsPerCheck is after how many writes the log's folder is checked for the
	// need of another segment: far fewer than fit into one.
	commitsPerCheck = 256
	// maxUnseen is how many checks in a row may find no segment that etcd makes. One
	// is possible, between the renaming of one and the making of the next.
	maxUnseen = 3
)

// nextSegments are the names under which etcd's file pipeline makes segments, in
// turn, until they are full of records and get a name of segmentName.
var nextSegments = []string{"0.tmp", "1.tmp"}

var segmentName = regexp.MustCompile(`^[0-9a-f]{16}-[0-9a-f]{16}\.wal$`)

// init shortens segments. etcd reads their length from a variable, without a lock: another
// etcd may run in the process by the time at which the first of ours begins.
func init() { wal.SegmentSizeBytes = segmentBytes }

// segmentPreparer writes zeros into the segments of the write-ahead log before
// etcd uses them. etcd only reserves their blocks, and each write into a block
// that was never written must be followed by a change of the file system's own
// journal. With zeros in the blocks, making a small write durable takes half of
// the time, and half of the processor's.
//
// etcd opens the names of nextSegments in turn, uses a file that it finds there,
// and renames it when the segment before it is full. So the name that is missing
// is the one that etcd opens next. The prepared segment gets that name once it is
// complete, and never replaces another file.
type segmentPreparer struct {
	log, spare string
	made       bool // spare is complete
	unseen     int  // checks in a row that found no name of nextSegments
	commits    atomic.Int64
	check      chan struct{}
}

func newSegmentPreparer(dataDir string) *segmentPreparer {
	return &segmentPreparer{
		log: datadir.ToWALDir(dataDir), spare: filepath.Join(datadir.ToMemberDir(dataDir), spareName),
		check: make(chan struct{}, 1),
	}
}

// countCommits returns a committer that requests a check every commitsPerCheck
// writes. It never waits for one.
func (s *segmentPreparer) countCommits(next committer) committer {
	return func(ctx context.Context, request *pb.TxnRequest) (*pb.TxnResponse, error) {
		if s.commits.Add(1)%commitsPerCheck == 0 {
			select {
			case s.check <- struct{}{}:
			default:
			}
		}
		return next(ctx, request)
	}
}

// run prepares segments until ctx ends, or until the log's folder is not what is known
// of etcd: then it logs one line and returns, and etcd makes its segments alone. If files
// or room on the disk are lacking, it tries again at the next check.
func (s *segmentPreparer) run(ctx context.Context, logger *slog.Logger) {
	failing := false
	for {
		select {
		case <-s.check:
			err := s.provide()
			if err != nil {
				err = errors.Join(err, s.dropSpare())
			}
			switch {
			case err == nil && failing:
				logger.Info("segments of etcd's log are prepared again")
			case err != nil && !lacksResources(err):
				logger.Warn("segments of etcd's log are not prepared any more: writes take longer", "error", err)
				return
			case err != nil && !failing:
				logger.Warn("segments of etcd's log are not prepared for now: writes take longer", "error", err)
			}
			failing = err != nil
		case <-ctx.Done():
			if err := s.dropSpare(); err != nil {
				logger.Warn("a prepared segment of etcd's log is left behind", "error", err)
			}
			return
		}
	}
}

// provide prepares the segment that etcd opens next, if it is missing.
func (s *segmentPreparer) provide() error {
	missing, err := s.missing()
	if err != nil || missing == "" {
		return err
	}
	if err := s.makeSpare(); err != nil {
		return fmt.Errorf("prepare a segment: %w", err)
	}
	// A link, because a rename would replace a file that etcd makes meanwhile.
	err = os.Link(s.spare, filepath.Join(s.log, missing))
	if errors.Is(err, fs.ErrExist) {
		return nil // the spare serves as the next one
	}
	return errors.Join(err, s.dropSpare())
}

// missing returns the name of nextSegments that etcd opens next, or "" if there
// is nothing to prepare. Its error says in what the log's folder differs from
// what is known of etcd.
func (s *segmentPreparer) missing() (string, error) {
	entries, err := os.ReadDir(s.log)
	if err != nil {
		return "", err
	}
	segments, missing := 0, slices.Clone(nextSegments)
	for _, entry := range entries {
		name := entry.Name()
		switch i := slices.Index(missing, name); {
		case i >= 0:
			missing = slices.Delete(missing, i, i+1)
		case segmentName.MatchString(name):
			segments++
		case strings.HasSuffix(name, ".tmp"):
			return "", fmt.Errorf("etcd prepares %s in %s, expected were %v only", name, s.log, nextSegments)
		}
	}
	if segments == 0 {
		return "", fmt.Errorf("etcd's log in %s has no file with a name like %s", s.log, segmentName)
	}
	switch len(missing) {
	case len(nextSegments):
		if s.unseen++; s.unseen >= maxUnseen {
			return "", fmt.Errorf("etcd prepares none of %v in %s", nextSegments, s.log)
		}
		return "", nil
	case 0:
		missing = append(missing, "")
	}
	s.unseen = 0
	return missing[0], nil
}

// makeSpare writes the spare. A spare that a dead process has left behind may be
// a second name of a segment in use: it is unlinked, never written to.
func (s *segmentPreparer) makeSpare() error {
	if s.made {
		return nil
	}
	if err := s.dropSpare(); err != nil {
		return err
	}
	file, err := os.OpenFile(s.spare, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for written := 0; written < segmentBytes && err == nil; written += len(zeros) {
		_, err = file.Write(zeros)
	}
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	s.made = err == nil
	return err
}

// dropSpare removes the spare's name.
func (s *segmentPreparer) dropSpare() error {
	s.made = false
	if err := os.Remove(s.spare); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
