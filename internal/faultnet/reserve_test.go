package faultnet

import (
	"fmt"
	"net"
	"testing"
)

// TestReservePort: a reserved port is not reserved again, and can be listened on again and
// again, also while connections to it are open or have just ended.
func TestReservePort(t *testing.T) {
	taken := map[int]bool{}
	for range 200 {
		port, release, err := ReservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if taken[port] {
			t.Fatalf("%d is reserved twice", port)
		}
		taken[port] = true
	}
	port, release, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	address := fmt.Sprint("127.0.0.1:", port)
	for range 3 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted.Close()
		l.Close()
	}
}
