package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/memory"
)

// openStore opens the storage that the configuration names. An external etcd
// is waited for until ctx ends, with a line in the log now and then; what
// waiting cannot mend fails at once.
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

// waitingReports is how often the log says that etcd is still being waited
// for.
const waitingReports = 5 * time.Second

func (c *Config) reportWaiting() func(etcd.Attempt) {
	next := time.Duration(0)
	return func(a etcd.Attempt) {
		if a.Waited < next {
			return
		}
		next = a.Waited + waitingReports
		c.Logger.Warn("waiting for etcd", "servers", c.EtcdServers, "waited", a.Waited.Round(time.Second), "attempt", a.Number, "error", a.Err)
	}
}
