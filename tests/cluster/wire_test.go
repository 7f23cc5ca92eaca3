//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// conditions are what happens to the packets on a wire.
type conditions struct {
	loss          float64 // the part of packets that is lost
	delay, jitter time.Duration
}

// usual are the conditions without a fault: a bad line.
var usual = conditions{loss: 0.02, delay: 10 * time.Millisecond, jitter: 10 * time.Millisecond}

// wire joins two hosts by devices (TUN) whose packets this process carries: it loses some,
// and delays each by its own time, so that packets overtake each other. Few kernels of small
// machines have netem, which does the same.
type wire struct {
	number int
	ends   [2]*os.File

	carried, lost, overtaken atomic.Int64

	mu     sync.Mutex
	is     conditions
	random *rand.Rand
}

const tunDevice = "/dev/net/tun"

func requireTun(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(tunDevice, os.O_RDWR, 0)
	if err != nil {
		t.Skip("packets are lost and delayed on devices of this process:", err)
	}
	_ = f.Close()
}

// newWire is the wire with a number between two hosts.
func newWire(t *testing.T, a, b *host, number int, seed uint64) *wire {
	t.Helper()
	w := &wire{number: number, is: usual, random: rand.New(rand.NewPCG(seed, uint64(number)))}
	for i, h := range []*host{a, b} {
		w.ends[i] = w.attach(t, h, i)
	}
	var running sync.WaitGroup
	for i := range w.ends {
		running.Go(func() { w.carry(w.ends[i], w.ends[1-i]) })
	}
	t.Cleanup(func() {
		_, _ = w.ends[0].Close(), w.ends[1].Close()
		running.Wait()
	})
	return w
}

// address is that of an end.
func (w *wire) address(end int) string {
	return fmt.Sprintf("198.19.%d.%d", os.Getpid()%80, 2*w.number+end+1)
}

// attach makes a device on a host.
func (w *wire) attach(t *testing.T, h *host, end int) *os.File {
	t.Helper()
	name := fmt.Sprintf("lw%d-w%d-%d", h.network.id, w.number, end)
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	device, err := unix.NewIfreq(name)
	if err == nil {
		device.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, device)
	}
	if err != nil {
		_ = unix.Close(fd)
		t.Fatalf("%s: %v", tunDevice, err)
	}
	file := os.NewFile(uintptr(fd), name) // a device now, so that reads can be ended
	n := h.network
	n.ip(t, "link", "set", name, "netns", h.namespace())
	n.ip(t, "-n", h.namespace(), "addr", "add", w.address(end), "peer", w.address(1-end), "dev", name)
	n.ip(t, "-n", h.namespace(), "link", "set", name, "up")
	return file
}

func (w *wire) set(to conditions) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.is = to
}

// next is what becomes of a packet.
func (w *wire) next() (lost bool, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.random.Float64() < w.is.loss {
		return true, 0
	}
	return false, w.is.delay + time.Duration(w.random.Float64()*float64(w.is.jitter))
}

// carry takes packets from one end to the other until the ends are closed.
func (w *wire) carry(from, to *os.File) {
	var under sync.WaitGroup
	defer under.Wait()
	var newest atomic.Int64
	buffer := make([]byte, 1<<16)
	for number := int64(1); ; number++ {
		n, err := from.Read(buffer)
		if errors.Is(err, os.ErrClosed) || n == 0 {
			return
		}
		lost, delay := w.next()
		if lost {
			w.lost.Add(1)
			continue
		}
		packet := append([]byte(nil), buffer[:n]...)
		under.Add(1)
		time.AfterFunc(delay, func() {
			defer under.Done()
			if last := newest.Load(); number < last {
				w.overtaken.Add(1)
			} else {
				newest.Store(number) // only for the count
			}
			w.carried.Add(1)
			_, _ = to.Write(packet) // what a host does not take is lost, as on any wire
		})
	}
}

func (w *wire) String() string {
	return fmt.Sprintf("%d packets carried, %d overtaken by others, %d lost", w.carried.Load(), w.overtaken.Load(), w.lost.Load())
}
