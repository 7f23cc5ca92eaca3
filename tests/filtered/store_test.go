package filtered

import (
	"bufio"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// storeDir is in the environment of a process that is the etcd of several servers.
const storeDir = "LEVELWIRE_FILTERED_STORE_DIR"

// runStore is that process. It ends with its parent. Only servers are killed in these tests, so
// nothing needs to be on the disk.
func runStore(dir string) error {
	config := embed.NewConfig()
	config.Dir, config.UnsafeNoFsync, config.LogLevel = dir, true, "fatal"
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	member, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer member.Close()
	select {
	case <-member.Server.ReadyNotify():
	case err := <-member.Err():
		return err
	}
	if _, err := os.Stdout.WriteString(member.Clients[0].Addr().String() + "\n"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// newStore starts an etcd, and returns its host and port.
func newStore(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), storeDir+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := childprocess.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // which ends it
		if err := cmd.Wait(); err != nil {
			t.Errorf("the end of etcd: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("etcd said %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}
