package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// DefaultDialTimeout is how long one attempt to reach a cluster may take.
const DefaultDialTimeout = 2 * time.Second

const (
	retryInterval = 500 * time.Millisecond
	// Half-open connections are found within the sum of these, and within the latter if
	// something was sent that was not confirmed. gRPC sends no more pings than this.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
	// maxSendBytes is above every sensible limit of a server: the server decides
	// which values are too large.
	maxSendBytes = 64 << 20
)

// Config says how to reach an external etcd cluster.
type Config struct {
	// Endpoints are the members' client URLs, such as https://10.0.0.1:2379.
	Endpoints []string
	// CAFile holds the PEM certificates that the members' own are checked
	// against. CertFile and KeyFile, both or neither, are this client's. All
	// need https endpoints.
	CAFile, CertFile, KeyFile string
	// Username and Password are for clusters with authentication by password.
	Username, Password string
	// DialTimeout bounds one attempt to reach the cluster. 0 means
	// DefaultDialTimeout.
	DialTimeout time.Duration
	// Logger gets interruptions of watches. Nil is slog.Default().
	Logger *slog.Logger
	// Waiting, if set, is called by Open after each failed attempt.
	Waiting func(Attempt)
}

// Attempt is a failed attempt to reach a cluster.
type Attempt struct {
	Number int           // from 1
	Waited time.Duration // since Open began
	Err    error
}

// Open connects to an external cluster and waits until it answers, as long as
// ctx allows. It fails at once where waiting cannot help: files that cannot be
// read, endpoints that are no URLs, credentials that are refused.
func Open(ctx context.Context, config Config) (*Store, error) {
	clientConfig, err := config.client()
	if err != nil {
		return nil, err
	}
	return config.connect(ctx, clientConfig)
}

// connect opens the store with a client of the given configuration.
func (c Config) connect(ctx context.Context, clientConfig clientv3.Config) (*Store, error) {
	client, err := clientv3.New(clientConfig)
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", strings.Join(c.Endpoints, ", "), err)
	}
	if err := c.await(ctx, client); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	watches := pb.NewWatchClient(client.ActiveConnection())
	store := newStore(client, remoteCommitter(client), func(ctx context.Context) (watchCall, error) { return watches.Watch(ctx) }, cmp.Or(c.Logger, slog.Default()))
	store.shutdown = client.Close
	return store, nil
}

// await returns once a linearizable read has succeeded.
func (c Config) await(ctx context.Context, client *clientv3.Client) error {
	timeout := c.DialTimeout
	if timeout == 0 {
		timeout = DefaultDialTimeout
	}
	begin := time.Now()
	for number := 1; ; number++ {
		attempt, cancel := context.WithTimeout(ctx, timeout)
		_, err := client.Get(attempt, absentKey, clientv3.WithCountOnly())
		cancel()
		if err == nil {
			return nil
		}
		if !isTransient(codeOf(err)) {
			return fmt.Errorf("etcd at %s refuses: %w", strings.Join(c.Endpoints, ", "), err)
		}
		if ctx.Err() == nil && c.Waiting != nil {
			c.Waiting(Attempt{Number: number, Waited: time.Since(begin), Err: err})
		}
		timer := time.NewTimer(retryInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("etcd at %s did not answer within %v: %w (%w)",
				strings.Join(c.Endpoints, ", "), time.Since(begin).Round(time.Millisecond), err, context.Cause(ctx))
		}
	}
}

// client checks the configuration and translates it.
func (c Config) client() (clientv3.Config, error) {
	if len(c.Endpoints) == 0 {
		return clientv3.Config{}, errors.New("no etcd endpoint given: name at least one, such as http://127.0.0.1:2379")
	}
	secure, err := c.tls()
	if err != nil {
		return clientv3.Config{}, err
	}
	for _, endpoint := range c.Endpoints {
		scheme, rest, ok := strings.Cut(endpoint, "://")
		switch {
		case !ok || rest == "" || scheme != "http" && scheme != "https" && scheme != "unix":
			return clientv3.Config{}, fmt.Errorf("etcd endpoint %q is not a URL: write it as http://host:port or https://host:port", endpoint)
		case secure != nil && scheme == "http":
			return clientv3.Config{}, fmt.Errorf("etcd endpoint %q is http, but TLS files were given: write https, or leave the files out", endpoint)
		}
	}
	return clientv3.Config{
		Endpoints:            c.Endpoints,
		TLS:                  secure,
		Username:             c.Username,
		Password:             c.Password,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallSendMsgSize:   maxSendBytes,
		DialOptions:          []grpc.DialOption{connectParams()},
		Logger:               zap.NewNop(),
	}, nil
}

// tls reads the files; it returns nil if there are none.
func (c Config) tls() (*tls.Config, error) {
	if c.CAFile == "" && c.CertFile == "" && c.KeyFile == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("etcd CA file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("etcd CA file %s holds no PEM certificate", c.CAFile)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("etcd client certificate and key go together: give both files or neither")
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("etcd client certificate %s, key %s: %w", c.CertFile, c.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
