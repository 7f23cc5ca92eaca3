package histories

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// memberSettings, in the environment, makes this test binary a member of an etcd cluster.
const memberSettings = "LEVELWIRE_HISTORIES_MEMBER"

// memberConfig is what a member is told.
type memberConfig struct {
	Name, Dir, Peer, Client string
	Cluster                 string // all members, as etcd wants them
}

// runMember is the member's process.
func runMember(text string) error {
	var c memberConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	config, err := c.embed()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
		fmt.Println("ready")
	case <-ctx.Done():
	case err := <-etcd.Err():
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-etcd.Err():
		return err
	}
}

func (c memberConfig) embed() (*embed.Config, error) {
	config := embed.NewConfig()
	config.Name, config.Dir, config.InitialCluster, config.LogLevel = c.Name, c.Dir, c.Cluster, "fatal"
	config.UnsafeNoFsync = true // a process that is killed leaves what it wrote with the system
	peer, err := url.Parse(c.Peer)
	if err != nil {
		return nil, err
	}
	client, err := url.Parse(c.Client)
	if err != nil {
		return nil, err
	}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	return config, nil
}

// member is one of several members of etcd that the servers share.
type member struct {
	child
	config memberConfig
}

// startMembers returns when so many members serve.
func startMembers(t *testing.T, n int) (members []*member) {
	t.Helper()
	var all []string
	for i := range n {
		m := &member{child: child{name: fmt.Sprintf("member %d", i)}, config: memberConfig{
			Name: fmt.Sprintf("member-%d", i), Dir: t.TempDir(),
			Peer: fmt.Sprint("http://127.0.0.1:", reservePort(t)), Client: fmt.Sprint("http://127.0.0.1:", reservePort(t)),
		}}
		members, all = append(members, m), append(all, m.config.Name+"="+m.config.Peer)
	}
	t.Cleanup(func() {
		for _, m := range members {
			m.end(t, syscall.SIGKILL)
		}
	})
	for _, m := range members {
		m.config.Cluster = strings.Join(all, ",")
		m.launch(t, memberSettings, m.config)
	}
	for _, m := range members {
		m.awaitReady(t)
	}
	return members
}

func urlsOf(members []*member) (urls []string) {
	for _, m := range members {
		urls = append(urls, m.config.Client)
	}
	return urls
}

// kill ends members at once, and starts them again.
func kill(t *testing.T, members ...*member) {
	t.Helper()
	for _, m := range members {
		m.end(t, syscall.SIGKILL)
	}
	for _, m := range members {
		m.launch(t, memberSettings, m.config)
	}
	for _, m := range members {
		m.awaitReady(t)
	}
}

// stopped is how long a member is: longer than watches wait for one that is silent, and than an election takes.
const stopped = 4 * time.Second

// stop has a member do nothing for a time, with its connections open.
func (b *testbed) stop(t *testing.T, m *member) {
	t.Helper()
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := m.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if s == syscall.SIGSTOP {
			wait(b.ctx, stopped)
		}
	}
}

// failMembers has each member fail, one after the other, in one of two ways: one of them is the leader.
func (b *testbed) failMembers(t *testing.T) {
	t.Helper()
	first := b.random.IntN(2)
	for i, m := range b.members {
		if (first+i)%2 == 0 {
			kill(t, m)
		} else {
			b.stop(t, m)
		}
	}
}

// failMost kills all members but one, so that nothing can be written until they are back.
func (b *testbed) failMost(t *testing.T) {
	t.Helper()
	spared := b.random.IntN(len(b.members))
	var most []*member
	for i, m := range b.members {
		if i != spared {
			most = append(most, m)
		}
	}
	kill(t, most...)
}
