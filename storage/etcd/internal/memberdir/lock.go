package memberdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/datadir"

	"github.com/levelwire/levelwire/internal/filelock"
)

// lockName is a file in the data directory. Its lock, not its existence, means
// that a process uses the directory.
const lockName = "levelwire.lock"

// ErrInUse is the error of a data directory that another process uses.
var ErrInUse = errors.New("in use by another process")

// Lock makes the directory, checks that this process can use what is in it,
// and locks it until the result is closed. etcd itself would wait silently for
// another process, and panic without the permission.
func Lock(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be made: %w", dir, reason(err))
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, inUse(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written to: %w", dir, reason(err))
	}
	held := filelock.Hold(lock.File)
	if err := errors.Join(probe(dir), awaitLog(dir)); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
}

// logPatience is for how long a lock of a file of the write-ahead log may outlive the process's last use of the directory.
const logPatience = time.Second

// awaitLog waits until the files of the write-ahead log can be locked: etcd ends the process if they cannot. A
// process that this one is starting at this moment has copies of what etcd has just closed (see filelock).
func awaitLog(dir string) error {
	files, err := filepath.Glob(filepath.Join(datadir.ToWALDir(dir), "*.wal"))
	if err != nil {
		return err
	}
	end := time.Now().Add(logPatience)
	for _, file := range files {
		for {
			held, err := filelock.IsHeld(file)
			if err != nil {
				return fmt.Errorf("data directory %s: the write-ahead log cannot be read: %w", dir, err)
			}
			if !held {
				break
			}
			if time.Now().After(end) {
				return inUse(dir)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// probe opens the database as etcd will, and closes it again. An etcd that does not
// know of our lock holds the database's own. It fails with a *DamageError if the
// database or the write-ahead log cannot be what the member has left.
func probe(dir string) error {
	if Bootstrapping(dir) {
		return nil // incomplete, and about to be made anew
	}
	path := datadir.ToBackendFileName(dir)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return verifyNoDatabase(dir)
	}
	if err != nil {
		return fmt.Errorf("data directory %s: the database cannot be opened: %w", dir, reason(err))
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	// Read-only, because that needs no scan of the free pages.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Nanosecond})
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return inUse(dir)
	case err != nil:
		return &DamageError{Path: path, Err: fmt.Errorf("not a usable etcd database: %w", err)}
	}
	last, err := Applied(db, path)
	if err := errors.Join(err, db.Close()); err != nil {
		return &DamageError{Path: path, Err: err}
	}
	return verifyLog(dir, last)
}

func inUse(dir string) error {
	return fmt.Errorf("data directory %s is %w: stop it, or choose another directory", dir, ErrInUse)
}

// reason drops the path from a file error, for messages that name it already.
func reason(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
