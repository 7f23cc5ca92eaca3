package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.etcd.io/etcd/server/v3/storage/datadir"

	"github.com/levelwire/levelwire/storage/etcd/internal/diskreserve"
	"github.com/levelwire/levelwire/storage/etcd/internal/etcdlog"
	"github.com/levelwire/levelwire/storage/etcd/internal/memberdir"
)

// Defaults of EmbedConfig.
const (
	DefaultQuotaBytes    = 8 << 30
	DefaultDiskReserve   = diskreserve.Default
	DefaultMaxValueBytes = 8 << 20
)

// MemberURL is the address that an embedded member advertises. Nothing listens there.
const MemberURL = "http://127.0.0.1:2380"

const (
	// A member without peers elects itself, after one to five of the ticks that etcd allows
	// at least in an election. Short ticks make that quick, but each wakes up two
	// goroutines: with 25 ms an idle member takes 0.7 % of a core, with 50 ms 0.45 %.
	tickMillis     = 50
	electionMillis = 5 * tickMillis
	// Snapshots are taken often, because a start replays the entries since the last
	// one: 10,000 writes of 3 kB took it half a second. No other member ever catches
	// up from this member's log, so few entries are kept in memory. But the entries
	// that a start replays must stay until the election, which runs meanwhile, has
	// looked at all of them: raft panics if one is missing, as it did on a busy
	// machine. memberdir.EnsureSnapshot does the rest.
	snapshotEvery  = 2_500
	catchUpEntries = 2 * snapshotEvery
	// slowStartInterval is how often a slow start is logged.
	slowStartInterval = 5 * time.Second
)

// EmbedConfig says how to run etcd in this process.
type EmbedConfig struct {
	// Dir is etcd's data directory, made if it does not exist. One process at a
	// time can use it.
	Dir string
	// Logger gets etcd's log: errors, warnings, and everything else at debug level.
	// Nil is slog.Default().
	Logger *slog.Logger
	// QuotaBytes bounds the database; writes fail with storage.ErrFull beyond it.
	// 0 means DefaultQuotaBytes.
	QuotaBytes int64
	// DiskReserveBytes is how much of the disk stays free: writes fail with
	// storage.ErrFull when there is less. 0 means DefaultDiskReserve; negative:
	// nothing is kept, and etcd ends the process when the disk is full.
	DiskReserveBytes int64
	// MaxValueBytes bounds one value; larger ones fail with
	// storage.ErrTooLarge. 0 means DefaultMaxValueBytes.
	MaxValueBytes int
	// ListenClientURL, if set, serves etcd's own API there, without
	// authentication, for etcdctl and the like. Empty means that nothing
	// listens at all. A port of 0 picks one, see Store.ClientURL.
	ListenClientURL string
	// PublicAPIOnly leaves out the shortcuts that rest on how etcd works inside: it
	// prepares no files of the write-ahead log, drops no pages of the mapped
	// database, and reads by etcd's API. Writes, long lists and memory cost more
	// then. A program that is linked with another etcd than the shortcuts were
	// verified with does without them, too, and logs that.
	PublicAPIOnly bool

	linked   func() versions             // nil: linkedVersions; others are for tests
	diskFree func(string) (int64, error) // nil: that of the disk; others are for tests
}

// Embed starts a one-member etcd in this process, on the data in config.Dir, and
// waits until it serves. Writes are on disk when they are acknowledged. An
// error names the directory.
func Embed(ctx context.Context, config EmbedConfig) (*Store, error) {
	if config.Dir == "" {
		return nil, errors.New("no data directory given")
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", config.Dir, err)
	}
	config.Dir = dir
	lock, err := memberdir.Lock(dir)
	if err != nil {
		return nil, err
	}
	store, err := config.start(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("etcd in data directory %s: %w", dir, err), lock.Close())
	}
	stop := store.shutdown
	store.shutdown = func() error { return errors.Join(stop(), lock.Close()) }
	return store, nil
}

// start runs etcd on a directory that is locked already.
func (c EmbedConfig) start(ctx context.Context) (*Store, error) {
	logger := cmp.Or(c.Logger, slog.Default())
	etcdLog := etcdlog.New(logger)
	config, err := c.server(etcdLog)
	if err != nil {
		return nil, err
	}
	if err := memberdir.PrepareBootstrap(c.Dir); err != nil {
		return nil, err
	}
	if err := memberdir.EnsureSnapshot(c.Dir); err != nil {
		return nil, err
	}
	internals := c.usesInternals(logger)
	server, err := startGuarded(config, etcdLog)
	if err != nil {
		return nil, err
	}
	err = awaitReady(ctx, server, logger)
	if err == nil && memberdir.Bootstrapping(c.Dir) {
		server.Server.KV().Commit() // EnsureSnapshot needs to find the member in its database
		err = memberdir.FinishBootstrap(c.Dir)
	}
	if err != nil {
		server.Close()
		return nil, err
	}
	etcdLog.Started()
	reserve := c.newReserve(logger)
	if reserve.Check() == nil { // a defragmentation needs room
		if err := reclaim(ctx, server, logger); err != nil {
			logger.Error("etcd's database was not made smaller", "error", err)
		}
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { keepReclaiming(background, server, reserve.Check, logger) })
	if reserve != nil {
		running.Go(func() { reserve.Run(background) })
	}
	var store *Store
	if internals {
		store = c.openStore(background, &running, server, logger)
	} else {
		store = c.openAPI(server, logger)
	}
	store.reserve = reserve
	store.dir, store.log = c.Dir, etcdLog
	store.embed(server, func() {
		stop()
		running.Wait()
	})
	return store, nil
}

func (c EmbedConfig) newReserve(logger *slog.Logger) *diskreserve.Reserve {
	measure := c.diskFree
	if measure == nil {
		measure = diskreserve.Free
	}
	return diskreserve.New(c.Dir, c.DiskReserveBytes, measure, logger)
}

// openAPI returns a store that uses only what etcd's API promises.
func (c EmbedConfig) openAPI(server *embed.Etcd, logger *slog.Logger) *Store {
	client := v3client.New(server.Server)
	watches := adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(server.Server))
	return newStore(client, v3rpc.NewQuotaKVServer(server.Server).Txn,
		func(ctx context.Context) (watchCall, error) { return watches.Watch(ctx) }, logger)
}

// openStore returns a store that takes the shortcuts of internals.go. What they do in
// the background ends with ctx.
func (c EmbedConfig) openStore(ctx context.Context, background *sync.WaitGroup, server *embed.Etcd, logger *slog.Logger) *Store {
	local := &localMember{kv: server.Server.KV(), database: server.Server.Backend(), file: datadir.ToBackendFileName(c.Dir), lentBefore: -1}
	segments := newSegmentPreparer(c.Dir)
	// The client package's own way to the member copies each value four times.
	kv := v3rpc.NewQuotaKVServer(server.Server)
	store := newStore(v3client.New(server.Server), segments.countCommits(kv.Txn), local.watch, logger)
	store.local = local
	background.Go(func() { local.limitResidentSet(ctx, logger) })
	background.Go(func() { segments.run(ctx, logger) })
	return store
}

// embed makes the store the owner of the member, which its Close stops after
// stopBackground has returned.
func (s *Store) embed(server *embed.Etcd, stopBackground func()) {
	s.embedded = true
	s.member = server
	if len(server.Clients) > 0 {
		s.clientURL = "http://" + server.Clients[0].Addr().String()
	}
	s.shutdown = func() error {
		stopBackground()
		err := s.client.Close()
		if errors.Is(err, context.Canceled) {
			err = nil // the client reports that it was open until now
		}
		server.Close()
		return err
	}
}

// awaitReady returns once the member serves, and logs a wait that takes long.
func awaitReady(ctx context.Context, server *embed.Etcd, logger *slog.Logger) error {
	begin := time.Now()
	ticker := time.NewTicker(slowStartInterval)
	defer ticker.Stop()
	for {
		waited := func() time.Duration { return time.Since(begin).Round(time.Millisecond) }
		select {
		case <-server.Server.ReadyNotify():
			return nil
		case err := <-server.Err():
			return fmt.Errorf("stopped while starting: %w", err)
		case <-ticker.C:
			logger.Warn("etcd is still starting", "dir", server.Config().Dir, "waited", waited())
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", waited(), context.Cause(ctx))
		}
	}
}

// startGuarded turns the panics, by which etcd reports data that it cannot use,
// into errors.
func startGuarded(config *embed.Config, etcdLog *etcdlog.Log) (server *embed.Etcd, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = memberdir.Unusable(config.Dir, etcdLog.Describe(p))
		}
	}()
	return embed.StartEtcd(config)
}

// server translates the configuration into etcd's.
func (c EmbedConfig) server(etcdLog *etcdlog.Log) (*embed.Config, error) {
	nominal, err := url.Parse(MemberURL)
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir = c.Dir
	config.ListenPeerUrls, config.ListenClientUrls = nil, nil
	config.AdvertisePeerUrls, config.AdvertiseClientUrls = []url.URL{*nominal}, []url.URL{*nominal}
	config.InitialCluster = config.Name + "=" + MemberURL
	if c.ListenClientURL != "" {
		listen, err := url.Parse(c.ListenClientURL)
		if err != nil {
			return nil, fmt.Errorf("client URL: %w", err)
		}
		config.ListenClientUrls = []url.URL{*listen}
		config.EnableGRPCGateway = false
	}
	config.TickMs, config.ElectionMs = tickMillis, electionMillis
	config.SnapshotCount, config.SnapshotCatchUpEntries = snapshotEvery, catchUpEntries
	config.QuotaBackendBytes = c.QuotaBytes
	if c.QuotaBytes == 0 {
		config.QuotaBackendBytes = DefaultQuotaBytes
	}
	config.MaxRequestBytes = uint(c.MaxValueBytes)
	if c.MaxValueBytes == 0 {
		config.MaxRequestBytes = DefaultMaxValueBytes
	}
	config.MaxRequestBytes += requestOverhead
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLog.Zap())
	return config, nil
}

// requestOverhead is room for the key and the guard around a value.
const requestOverhead = 4 << 10

// ClientURL returns where etcd's own API is served, or "" if it is not.
func (s *Store) ClientURL() string { return s.clientURL }
