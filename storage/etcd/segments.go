package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// segmentBytes is the length of a file of the raft log, in place of etcd's
	// 64 MB: the shorter one is, the sooner prepared ones are in use.
	segmentBytes = 16 << 20
	// spareName is a segment that is being made, beside the log's folder.
	spareName = "next-segment"
	// commitsPerLook is how many writes pass before it is looked whether the log
	// needs another segment: far fewer than fit into one.
	commitsPerLook = 256
)

// etcd reads the length of segments from a variable.
var setSegmentBytes = sync.OnceFunc(func() { wal.SegmentSizeBytes = segmentBytes })

// segments writes zeros into the files of the raft log before they are used.
// etcd only reserves their blocks, and each write into a block that was never
// written has to be followed by a change of the file system's own journal: with
// zeros there, making a small write durable takes half of the time, and half of the
// CPU.
//
// etcd opens the files 0.tmp and 1.tmp in turn, uses one that is there, and
// renames it when the segment before it is full. So the one that is missing is
// the next to be opened. It is put there complete, and never in place of another.
type segments struct {
	log, spare string
	made       bool // spare is complete
	commits    atomic.Int64
	look       chan struct{}
}

func newSegments(dir string) *segments {
	member := filepath.Join(dir, "member")
	return &segments{log: filepath.Join(member, "wal"), spare: filepath.Join(member, spareName), look: make(chan struct{}, 1)}
}

// counting returns a committer that has it looked for the need now and then.
func (s *segments) counting(next func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error)) committer {
	return func(ctx context.Context, request *pb.TxnRequest) (*pb.TxnResponse, error) {
		if s.commits.Add(1)%commitsPerLook == 0 {
			select {
			case s.look <- struct{}{}:
			default:
			}
		}
		return next(ctx, request)
	}
}

// run provides segments until ctx ends. It returns the error that makes it give
// up, which costs nothing but time: etcd makes its own.
func (s *segments) run(ctx context.Context) error {
	for {
		select {
		case <-s.look:
			if err := s.provide(); err != nil {
				return errors.Join(fmt.Errorf("prepare a segment of the log: %w", err), s.drop())
			}
		case <-ctx.Done():
			return s.drop()
		}
	}
}

// provide puts the segment there that will be opened next, if it is missing.
func (s *segments) provide() error {
	var missing []string
	for _, name := range []string{"0.tmp", "1.tmp"} {
		path := filepath.Join(s.log, name)
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, path)
		case err != nil:
			return err
		}
	}
	if len(missing) != 1 {
		return nil
	}
	if err := s.make(); err != nil {
		return err
	}
	// A link, because a rename would replace a file that etcd makes meanwhile.
	err := os.Link(s.spare, missing[0])
	if errors.Is(err, fs.ErrExist) {
		return nil // it will do for the next one
	}
	return errors.Join(err, s.drop())
}

// make writes the spare. What a process left behind that died may by now be
// another name of a segment in use: it is unlinked, never written to.
func (s *segments) make() error {
	if s.made {
		return nil
	}
	if err := s.drop(); err != nil {
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

// drop removes the name of the spare.
func (s *segments) drop() error {
	s.made = false
	if err := os.Remove(s.spare); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
