package memberdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/datadir"
)

// bootstrapMark is a file that marks a member whose first start has not succeeded
// yet. A process that dies between making the write-ahead log and writing its
// first entries leaves a member without voters, which would wait for a leader for
// ever. A member with the mark has not acknowledged any write, so it is made
// anew. The mark lies inside the member's folder: a restored backup replaces it
// together with the data.
const bootstrapMark = "first-start"

// PrepareBootstrap removes what an interrupted first start has left, and marks
// the member if this is a first start.
func PrepareBootstrap(dir string) error {
	member := datadir.ToMemberDir(dir)
	mark := filepath.Join(member, bootstrapMark)
	_, err := os.Stat(mark)
	switch {
	case err == nil:
		// The mark goes last, in FinishBootstrap.
		return errors.Join(os.RemoveAll(datadir.ToWALDir(dir)), os.RemoveAll(datadir.ToSnapDir(dir)))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := os.Stat(member); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(member, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(mark, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return errors.Join(Sync(member), Sync(dir))
}

// Bootstrapping reports whether the member's first start has not succeeded yet: then its
// folder holds nothing of value.
func Bootstrapping(dir string) bool {
	_, err := os.Stat(filepath.Join(datadir.ToMemberDir(dir), bootstrapMark))
	return err == nil
}

// FinishBootstrap removes the mark, durably: it must not come back once a write has
// been acknowledged.
func FinishBootstrap(dir string) error {
	member := datadir.ToMemberDir(dir)
	err := os.Remove(filepath.Join(member, bootstrapMark))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return Sync(member)
}

// Sync makes the entries of a directory durable.
func Sync(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(fileutil.Fsync(dir), dir.Close()); err != nil {
		return fmt.Errorf("sync of %s: %w", path, err)
	}
	return nil
}
