//go:build linux

package cluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// segment is a network of its own, with its own addresses.
type segment int

const (
	peers segment = iota // where members reach each other
	store                // where servers reach members
	front                // where clients reach servers
	segments
)

// network has hosts on segments: network namespaces, joined by bridges that this process
// reaches, too. Without namespaces all hosts are this one, and no network can fail.
type network struct {
	namespaces bool
	id         int // of this process, of interfaces and addresses
	hosts      int
}

// newNetwork needs root for namespaces.
func newNetwork(t *testing.T, namespaces bool) *network {
	t.Helper()
	n := &network{namespaces: namespaces, id: os.Getpid() % 80}
	if !namespaces {
		return n
	}
	for s := range segments {
		// Of what a process that was killed has left.
		_ = exec.Command("ip", "link", "del", n.bridge(s)).Run()
		n.ip(t, "link", "add", n.bridge(s), "type", "bridge")
		t.Cleanup(func() { n.ip(t, "link", "del", n.bridge(s)) })
		n.ip(t, "addr", "add", n.address(s, 254)+"/24", "dev", n.bridge(s))
		n.ip(t, "link", "set", n.bridge(s), "up")
	}
	return n
}

// requireNamespaces skips the test if it may not make them.
func requireNamespaces(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("networks are parted in network namespaces: run it as root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("networks are parted with ip, of iproute2:", err)
	}
	if out, err := exec.Command("ip", "netns", "add", "levelwire-probe").CombinedOutput(); err != nil {
		t.Skipf("network namespaces cannot be made here: %s", strings.TrimSpace(string(out)))
	}
	_ = exec.Command("ip", "netns", "del", "levelwire-probe").Run()
}

func (n *network) bridge(s segment) string { return fmt.Sprintf("lw%d-%d", n.id, s) }

// address is one of those that are for tests of networks (RFC 2544).
func (*network) addressOf(id int, s segment, host int) string {
	return fmt.Sprintf("198.18.%d.%d", id*int(segments)+int(s), host)
}

func (n *network) address(s segment, host int) string { return n.addressOf(n.id, s, host) }

func (n *network) ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// host runs one process.
type host struct {
	network *network
	number  int
	on      []segment
}

// host makes one on these segments.
func (n *network) host(t *testing.T, on ...segment) *host {
	t.Helper()
	n.hosts++
	h := &host{network: n, number: n.hosts, on: on}
	if !n.namespaces {
		return h
	}
	_ = exec.Command("ip", "netns", "del", h.namespace()).Run()
	n.ip(t, "netns", "add", h.namespace())
	t.Cleanup(func() { n.ip(t, "netns", "del", h.namespace()) })
	n.ip(t, "-n", h.namespace(), "link", "set", "lo", "up")
	for _, s := range on {
		n.ip(t, "link", "add", h.link(s), "type", "veth", "peer", "name", inside(s), "netns", h.namespace())
		n.ip(t, "link", "set", h.link(s), "master", n.bridge(s), "up")
		n.ip(t, "-n", h.namespace(), "addr", "add", h.address(s)+"/24", "dev", inside(s))
		n.ip(t, "-n", h.namespace(), "link", "set", inside(s), "up")
	}
	return h
}

func (h *host) namespace() string { return fmt.Sprintf("lw%d-h%d", h.network.id, h.number) }

// link is the bridge's end of the host's wire.
func (h *host) link(s segment) string { return fmt.Sprintf("lw%d-h%d-%d", h.network.id, h.number, s) }

// inside is the host's end.
func inside(s segment) string { return fmt.Sprintf("eth%d", s) }

func (h *host) address(s segment) string {
	if !h.network.namespaces {
		return "127.0.0.1"
	}
	return h.network.address(s, h.number)
}

// port returns an address with a port that is free.
func (h *host) port(t *testing.T, s segment, port int) string {
	t.Helper()
	if h.network.namespaces {
		return fmt.Sprintf("%s:%d", h.address(s), port)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// command runs a program on the host.
func (h *host) command(program string, args ...string) *exec.Cmd {
	if !h.network.namespaces {
		return exec.Command(program, args...)
	}
	// It becomes the program, as the same process.
	return exec.Command("ip", append([]string{"netns", "exec", h.namespace(), program}, args...)...)
}

// cut pulls the host's plug out of a segment: what is sent either way is lost.
func (h *host) cut(t *testing.T, s segment, on bool) {
	t.Helper()
	h.network.ip(t, "link", "set", h.link(s), map[bool]string{true: "down", false: "up"}[on])
}

// mute loses what this host sends to another one, which is not noticed by either. The
// other way is as before.
func (h *host) mute(t *testing.T, s segment, to *host, on bool) {
	t.Helper()
	neighbour := []string{"-n", h.namespace(), "neigh"}
	if on { // an address that no interface has
		neighbour = append(neighbour, "replace", to.address(s), "lladdr", "02:00:00:00:00:99", "nud", "permanent")
	} else {
		neighbour = append(neighbour, "del", to.address(s))
	}
	h.network.ip(t, append(neighbour, "dev", inside(s))...)
}
