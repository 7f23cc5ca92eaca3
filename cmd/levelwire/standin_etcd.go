package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

const (
	etcdHeaderTimeout = 5 * time.Second
	etcdStopTimeout   = time.Second
)

func newEtcdStandIn() *cobra.Command {
	var urls []string
	cmd := lenient(&cobra.Command{
		Use:   "etcd",
		Short: "A process in place of etcd that only says that it is well",
		Long: `A process in place of etcd, for tests that insist on starting one: it answers
/health and stores nothing. Levelwire's API server, in place of kube-apiserver,
keeps its objects in its own memory. Flags that it does not know are ignored.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := asLongAsItsParent(cmd.Context())
			defer cancel()
			return serveHealth(ctx, urls)
		},
	})
	cmd.Flags().StringSliceVar(&urls, "listen-client-urls", []string{"http://localhost:2379"}, "where to answer")
	cmd.Flags().Bool("unsafe-no-fsync", false, "means nothing, as nothing is written")
	return cmd
}

// serveHealth answers on every URL until ctx ends.
func serveHealth(ctx context.Context, urls []string) error {
	group, ctx := errgroup.WithContext(ctx)
	handler := http.NewServeMux()
	handler.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"health":"true","reason":""}`)
	})
	handler.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"etcdserver":"3.6.0","etcdcluster":"3.6.0","storage":"3.6.0"}`)
	})
	for _, raw := range urls {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || u.Host == "" {
			return cli.Usage(fmt.Errorf("--listen-client-urls: %q is no URL such as http://127.0.0.1:2379", raw))
		}
		if u.Scheme != "http" {
			return cli.Usage(fmt.Errorf("--listen-client-urls: %q: only http is answered", raw))
		}
		listener, err := net.Listen("tcp", u.Host) //nolint:noctx // Binding a socket does not block.
		if err != nil {
			return fmt.Errorf("--listen-client-urls: %w", err)
		}
		group.Go(func() error { return serveUntil(ctx, listener, handler) })
	}
	return group.Wait()
}

func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: etcdHeaderTimeout}
	stopped := context.AfterFunc(ctx, func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), etcdStopTimeout)
		defer cancel()
		if s.Shutdown(stopping) != nil {
			_ = s.Close() // the connections are cut; there is nothing else to do
		}
	})
	defer stopped()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
