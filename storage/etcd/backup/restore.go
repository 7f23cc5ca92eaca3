// Package backup makes the data directory of an embedded member out of a snapshot.
package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.uber.org/zap"

	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/etcd/internal/memberdir"
)

// RevisionBump is how far the revisions of a restored store are ahead of the
// snapshot's. Clients have seen later revisions than the snapshot has, and the
// restored store must not use them again for other states: all of them count as
// compacted, so that clients get 410 and ask for a difference, or list. It is the
// number that etcd recommends for Kubernetes.
const RevisionBump = 1_000_000_000

// partName is the folder in which a restore works, below the data directory.
const partName = "restoring"

// Restore makes the data directory of an embedded member from a snapshot that
// etcd.Store.Snapshot, levelwire or etcdctl has made, or from a member's database
// file. The directory must hold no member. An interrupted restore leaves none.
func Restore(file, dir string) error {
	checked, err := isSnapshot(file)
	if err != nil {
		return err
	}
	if !checked {
		if err := etcd.CheckDatabase(file); err != nil {
			return err
		}
	}
	member := datadir.ToMemberDir(dir)
	if fileutil.Exist(member) {
		return fmt.Errorf("%s already holds objects: choose another directory, or move it away", member)
	}
	lock, err := memberdir.Lock(dir)
	if err != nil {
		return err
	}
	part := filepath.Join(dir, partName)
	err = errors.Join(os.RemoveAll(part), restore(file, part, !checked))
	if err == nil {
		err = os.Rename(datadir.ToMemberDir(part), member)
	}
	return errors.Join(err, os.RemoveAll(part), memberdir.Sync(dir), lock.Close())
}

func restore(file, dir string, skipHash bool) error {
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, OutputDataDir: dir, SkipHashCheck: skipHash,
		Name: embed.DefaultName, PeerURLs: []string{etcd.MemberURL}, InitialCluster: embed.DefaultName + "=" + etcd.MemberURL,
		InitialClusterToken: embed.NewConfig().InitialClusterToken,
		RevisionBump:        RevisionBump, MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("%s cannot be restored: %w", file, err)
	}
	return nil
}

// isSnapshot reports whether a file ends with a checksum, by its length as etcd does;
// a database does not.
func isSnapshot(file string) (bool, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return false, err
	case info.IsDir():
		return false, fmt.Errorf("%s is a directory: name a snapshot, or a member's database (DIR/etcd/member/snap/db)", file)
	}
	return HasChecksum(info.Size()), nil
}

// HasChecksum reports whether a file with that many bytes is a snapshot, which ends
// with a SHA-256, and not a database, whose pages are multiples of a disk's sectors.
func HasChecksum(size int64) bool {
	const sector = 512
	return size%sector == sha256.Size
}
