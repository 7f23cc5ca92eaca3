package upstream

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// Etcd is an etcd in this process that listens on a port of the loopback
// interface: the etcd3 storage knows no other way to reach it.
type Etcd struct {
	server *embed.Etcd
}

// EtcdOptions configures StartEtcd.
type EtcdOptions struct {
	// DataDir holds its files. Required.
	DataDir string
	// Fsync makes writes durable, as they are in production. Default: they
	// are not, which is what tests can afford.
	Fsync bool
}

// StartEtcd starts an etcd and waits until it serves. Stop it with Close.
func StartEtcd(ctx context.Context, opts EtcdOptions) (*Etcd, error) {
	config := embed.NewConfig()
	config.Dir = opts.DataDir
	config.UnsafeNoFsync = !opts.Fsync
	config.LogLevel = "fatal"
	config.MaxRequestBytes = 1536 * 1024
	config.QuotaBackendBytes = 8 << 30
	// What kube-apiserver's documentation asks for: its watch cache learns of
	// the progress of idle resources by it.
	config.WatchProgressNotifyInterval = 5 * time.Second
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &Etcd{server: server}, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	server.Close()
	return nil, fmt.Errorf("start etcd: %w", err)
}

// Endpoint is the URL that its clients connect to.
func (e *Etcd) Endpoint() string {
	return "http://" + e.server.Clients[0].Addr().String()
}

// Close stops it. Its files stay.
func (e *Etcd) Close() { e.server.Close() }
