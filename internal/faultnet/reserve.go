package faultnet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports that ReservePort takes lie below those that systems give to outgoing
// connections, and to listeners that ask for any: on Linux they begin at 32768.
const (
	firstReserved = 15_000
	endReserved   = 30_000
)

// ReservePort returns a TCP port of 127.0.0.1 for a server that goes away and comes back.
// A port that a server got from the system, and gave back, may be that of something else
// when the server comes back. A reserved one is not: the system gives it away only if it is
// asked for, and no process is given it by another ReservePort before release.
//
// What reserves the port is a socket of UDP at the same number, which leaves the number free
// for TCP.
func ReservePort() (port int, release func(), err error) {
	const tries = 1000
	for range tries {
		port := firstReserved + rand.IntN(endReserved-firstReserved)
		reserved, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			continue // it is reserved
		}
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			_ = reserved.Close()
			continue // something listens there
		}
		if err := l.Close(); err != nil {
			return 0, nil, errors.Join(err, reserved.Close())
		}
		return port, func() { _ = reserved.Close() }, nil
	}
	return 0, nil, fmt.Errorf("faultnet: none of %d ports between %d and %d is free", tries, firstReserved, endReserved)
}
