package transport

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TCP itself must find a dead peer, because HTTP/1.1 has no pings.
func TestKeepAliveOfConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	options := func(config Config) (idle, count, userTimeout int) {
		t.Helper()
		conn, err := config.dialer()(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		get := func(level, opt int) (v int) {
			if err := raw.Control(func(fd uintptr) { v, err = unix.GetsockoptInt(int(fd), level, opt) }); err != nil {
				t.Fatal(err)
			}
			return v
		}
		if get(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 0 {
			return 0, 0, get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}
		return get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), get(unix.IPPROTO_TCP, unix.TCP_KEEPCNT), get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}
	if idle, count, timeout := options(Config{ReadIdleTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}); idle != 10 || count != 3 || timeout != 15000 {
		t.Errorf("by default: idle %d s, %d probes, user timeout %d ms", idle, count, timeout)
	}
	if idle, _, timeout := options(Config{ReadIdleTimeout: 40 * time.Second, PingTimeout: 9 * time.Second}); idle != 40 || timeout != 49000 {
		t.Errorf("options: idle %d s, user timeout %d ms", idle, timeout)
	}
	if idle, _, timeout := options(Config{ReadIdleTimeout: -1}); idle != 0 || timeout != 0 {
		t.Errorf("off: idle %d s, user timeout %d ms", idle, timeout)
	}
}
