package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/epoch"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/memory"
)

// openStore opens the configured storage. It waits for an external etcd until ctx
// ends, with a log line now and then; an error that waiting cannot resolve is
// returned at once.
func (c *Config) openStore(ctx context.Context) (storage.Store, error) {
	if c.OpenStore != nil {
		return c.OpenStore(ctx)
	}
	switch c.Storage {
	case Memory:
		return memory.Open(memory.Options{})
	case Etcd:
		return etcd.Open(ctx, etcd.Config{
			Endpoints: c.EtcdServers,
			CAFile:    c.EtcdCAFile, CertFile: c.EtcdCertFile, KeyFile: c.EtcdKeyFile,
			Logger:  c.Logger,
			Waiting: c.reportWaiting(),
		})
	default:
		return etcd.Embed(ctx, etcd.EmbedConfig{
			Dir: filepath.Join(c.DataDir, "etcd"), Logger: c.Logger,
			QuotaBytes: c.QuotaBytes, DiskReserveBytes: c.DiskReserveBytes,
		})
	}
}

// epochName is the file in the data directory that remembers the storage: package epoch.
const epochName = "storage-epoch.json"

// enterEpoch returns the store with the revisions that clients are to see, and what
// notices that the store goes back; nil for a store of the program's own.
func (c *Config) enterEpoch(ctx context.Context, store storage.Store) (storage.Store, *epoch.Tracker, error) {
	if c.OpenStore != nil {
		return store, nil, nil
	}
	seen, tracker, err := epoch.Open(ctx, store, epoch.Config{
		Path: filepath.Join(c.DataDir, epochName), Logger: c.Logger,
		AcceptOther: c.AcceptOtherStorage || c.Storage != Etcd, // which other servers may use, too
	})
	if errors.Is(err, epoch.ErrOther) {
		err = fmt.Errorf("%w: give this server a --data-dir of its own; or, if the storage has taken the place of the former one, start it once with --accept-other-storage, and then the storage's other servers again", err)
	}
	return seen, tracker, err
}

// awaitFailure returns the error with which embedded storage fails for good, or nil when
// ctx ends.
func awaitFailure(ctx context.Context, store storage.Store) error {
	failing, ok := storage.Innermost(store).(interface {
		Failed() <-chan struct{}
		Failure() error
	})
	if !ok {
		return nil
	}
	select {
	case <-failing.Failed():
		return failing.Failure()
	case <-ctx.Done():
		return nil
	}
}

// waitingReportInterval is how often the wait for etcd is logged.
const waitingReportInterval = 5 * time.Second

func (c *Config) reportWaiting() func(etcd.Attempt) {
	next := time.Duration(0)
	return func(a etcd.Attempt) {
		if a.Waited < next {
			return
		}
		next = a.Waited + waitingReportInterval
		c.Logger.Warn("waiting for etcd", "servers", c.EtcdServers, "waited", a.Waited.Round(time.Second), "attempt", a.Number, "error", a.Err)
	}
}
