package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// birthName marks a member whose first start has not succeeded yet. A process
// that dies in the moment between the making of the raft log and the writing of
// its first entries leaves a member without voters, which would wait for a
// leader for ever. Nothing can have been acknowledged by a member that carries
// the mark, so it is simply made anew. The mark lies inside the member's folder:
// a restored backup replaces it together with the data.
const birthName = "first-start"

// prepareBirth removes what an interrupted first start has left, and marks the
// member if this is a first start.
func prepareBirth(dir string) error {
	member := filepath.Join(dir, "member")
	mark := filepath.Join(member, birthName)
	_, err := os.Stat(mark)
	switch {
	case err == nil:
		// The mark goes last, in finishBirth.
		return errors.Join(os.RemoveAll(filepath.Join(member, "wal")), os.RemoveAll(filepath.Join(member, "snap")))
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
	return errors.Join(syncDir(member), syncDir(dir))
}

// birthInterrupted tells whether the member's first start has not succeeded,
// so that nothing in its folder is of any worth.
func birthInterrupted(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "member", birthName))
	return err == nil
}

// finishBirth removes the mark, on disk too: it must not come back once a write
// has been acknowledged.
func finishBirth(dir string) error {
	member := filepath.Join(dir, "member")
	err := os.Remove(filepath.Join(member, birthName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(member)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(fileutil.Fsync(dir), dir.Close()); err != nil {
		return fmt.Errorf("sync of %s: %w", path, err)
	}
	return nil
}
