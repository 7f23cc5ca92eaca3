package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/datadir"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd/internal/memberdir"
)

var _ storage.Maintainer = (*Store)(nil)

// Defragment makes the files of the databases of all members as small as what is in
// them, one after the other. A member answers nothing meanwhile: about a second for
// each 100 MB. It also clears etcd's alarms about quotas. A member that has no room still
// raises its alarm again with the next write.
func (s *Store) Defragment(ctx context.Context) ([]storage.Defragmentation, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.RUnlock()
	var done []storage.Defragmentation
	for _, endpoint := range s.endpoints() {
		before, err := s.client.Status(ctx, endpoint)
		if err != nil {
			return done, s.fail(ctx, err)
		}
		if err := s.defragment(ctx, endpoint); err != nil {
			return done, s.fail(ctx, err)
		}
		after, err := s.client.Status(ctx, endpoint)
		if err != nil {
			return done, s.fail(ctx, err)
		}
		done = append(done, storage.Defragmentation{Endpoint: endpoint, Before: before.DbSize, After: after.DbSize})
	}
	if s.member == nil {
		if err := s.clearAlarms(ctx); err != nil {
			return done, s.fail(ctx, err)
		}
	}
	return done, nil
}

// clearAlarms has a cluster take writes again after one of its members reached its quota.
func (s *Store) clearAlarms(ctx context.Context) error {
	raised, err := s.client.AlarmList(ctx)
	if err != nil {
		return err
	}
	for _, alarm := range raised.Alarms {
		if alarm.Alarm != pb.AlarmType_NOSPACE {
			continue
		}
		if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: alarm.MemberID, Alarm: alarm.Alarm}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) defragment(ctx context.Context, endpoint string) error {
	if s.member == nil {
		_, err := s.client.Defragment(ctx, endpoint)
		return err
	}
	if err := s.member.Server.Backend().Defrag(); err != nil {
		return err
	}
	return reclaim(ctx, s.member, s.logger)
}

// endpoints are the members' URLs, as the maintenance calls of the client take them.
func (s *Store) endpoints() []string {
	if s.member != nil {
		return []string{""}
	}
	return s.client.Endpoints()
}

// Snapshot returns all data of one member as they are at a moment, in the format of
// "etcdctl snapshot save": the database, and its SHA-256. The caller must close the
// result, which ends with ctx.
func (s *Store) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	data, err := s.client.Snapshot(ctx)
	if err != nil {
		s.calls.RUnlock()
		return nil, s.fail(ctx, err)
	}
	return &snapshotReader{data, s}, nil
}

// snapshotReader keeps the store open until it is closed.
type snapshotReader struct {
	io.ReadCloser
	store *Store
}

func (r *snapshotReader) Close() error {
	defer r.store.calls.RUnlock()
	return r.ReadCloser.Close()
}

// Check reads everything that each member has and compares the members. An error
// means that a member could not be asked; what is wrong with it is in its report.
func (s *Store) Check(ctx context.Context) ([]storage.MemberReport, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.RUnlock()
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	var reports []storage.MemberReport
	at := int64(0) // of the first member, so that all read the same
	for _, endpoint := range s.endpoints() {
		status, err := s.client.Status(ctx, endpoint)
		if err != nil {
			return reports, s.fail(ctx, err)
		}
		if at == 0 {
			at = status.Header.Revision
		}
		hash, err := s.client.HashKV(ctx, endpoint, at)
		if err != nil {
			return reports, s.fail(ctx, err)
		}
		report := storage.MemberReport{
			Endpoint: endpoint, Version: status.Version, Revision: status.Header.Revision, Compacted: hash.CompactRevision,
			Size: status.DbSize, InUse: status.DbSizeInUse, Quota: status.DbSizeQuota, Hash: hash.Hash,
			Problems: problemsOf(status, alarms),
		}
		if len(reports) > 0 && reports[0].Compacted == report.Compacted && reports[0].Hash != report.Hash {
			report.Problems = append(report.Problems, fmt.Sprintf("its data differ from those of %s at revision %d: replace one of these members", reports[0].Endpoint, at))
		}
		reports = append(reports, report)
	}
	return reports, nil
}

func problemsOf(status *clientv3.StatusResponse, alarms *clientv3.AlarmResponse) []string {
	problems := status.Errors
	for _, alarm := range alarms.Alarms {
		switch {
		case alarm.MemberID != status.Header.MemberId:
		case alarm.Alarm == pb.AlarmType_NOSPACE:
			problems = append(problems, "the quota is exceeded: delete objects, or raise the quota, then run levelwire defrag")
		case alarm.Alarm == pb.AlarmType_CORRUPT:
			problems = append(problems, "etcd has found that the data are damaged: restore a snapshot")
		}
	}
	return problems
}

// CheckFiles reads the files of an embedded member that does not run, and changes
// nothing. Its error is a *DamageError if they are damaged.
func CheckFiles(dir string) error {
	lock, err := memberdir.Lock(dir) // looks at the files
	if err != nil {
		return err
	}
	err = CheckDatabase(datadir.ToBackendFileName(dir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // everything is in the write-ahead log still
	}
	return errors.Join(err, lock.Close())
}

// CheckDatabase reads a database, or a snapshot of one, and checks its structure. Its
// error is a *DamageError if that is damaged.
func CheckDatabase(path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return &DamageError{Path: path, Err: fmt.Errorf("not a usable etcd database: %w", err)}
	}
	defer func() { _ = db.Close() }()
	if _, err := memberdir.Applied(db, path); err != nil {
		return &DamageError{Path: path, Err: err}
	}
	return db.View(func(tx *bbolt.Tx) error {
		var first error
		for err := range tx.Check() { // to its end, because it is sent by a goroutine
			if first == nil {
				first = &DamageError{Path: path, Err: err}
			}
		}
		return first
	})
}
