package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/levelwire/levelwire/internal/faultnet"
)

// StartReplicas starts n servers of ours on one etcd, as docs/operators/several-servers.md has it, behind a balancer of
// TCP connections.
func (c *Cluster) StartReplicas(ctx context.Context, n int) error {
	etcd, err := c.startEtcd()
	if err != nil {
		return err
	}
	const first = "levelwire-1"
	var targets []string
	for i := range n {
		name := fmt.Sprintf("levelwire-%d", i+1)
		if name != first { // all have the authority, and the key of service accounts, of the first
			if err := os.CopyFS(filepath.Join(c.data(name), "pki"), os.DirFS(filepath.Join(c.data(first), "pki"))); err != nil {
				return err
			}
		}
		if err := c.startLevelwire(ctx, name, "serve", "--etcd-servers", etcd); err != nil {
			return err
		}
		targets = append(targets, strings.TrimPrefix(c.url, "https://"))
	}
	balancer, err := faultnet.NewBalancer(targets...)
	if err != nil {
		return err
	}
	c.release = append(c.release, func() { _ = balancer.Close() })
	c.serveAt("https://" + balancer.Addr())
	if c.admin, err = c.kubeconfig("admin", "system:masters"); err != nil {
		return err
	}
	return c.AwaitReady(ctx)
}
