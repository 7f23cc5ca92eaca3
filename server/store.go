package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/levelwire/levelwire/storage"
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
		return etcd.Embed(ctx, etcd.EmbedConfig{Dir: filepath.Join(c.DataDir, "etcd"), Logger: c.Logger})
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
