package apiserver

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/storage"
)

// rawWatches are watches on one HTTP/2 connection whose windows the test opens
// itself.
type rawWatches struct {
	t      testing.TB
	conn   *tls.Conn
	framer *http2.Framer
	mute   map[uint32]bool   // streams whose windows stay shut
	rest   map[uint32][]byte // of each stream, what is no whole event yet
	seen   map[uint32]int    // revisions that each stream has got, in order from first on
	first  int
	owed   map[uint32]uint32 // of the streams that are mute
}

// openRaw opens watches with windows of HTTP/2's default, 64 kB.
// receive limits how much the kernel takes for a client that does not read; 0
// leaves it as it is.
func openRaw(t testing.TB, c *cluster, streams, receive int, path string) *rawWatches {
	t.Helper()
	address := strings.TrimPrefix(c.url, "https://")
	inner, err := net.Dial("tcp", address)
	must(t, err)
	if receive > 0 {
		must(t, inner.(*net.TCPConn).SetReadBuffer(receive))
	}
	conn := tls.Client(inner, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(t, err)
	w := &rawWatches{
		t: t, conn: conn, framer: http2.NewFramer(conn, conn),
		mute: map[uint32]bool{}, rest: map[uint32][]byte{}, seen: map[uint32]int{}, owed: map[uint32]uint32{},
	}
	must(t, w.framer.WriteSettings())
	must(t, w.framer.WriteWindowUpdate(0, 1<<30))
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range streams {
		block.Reset()
		for _, field := range [][2]string{
			{":method", "GET"}, {":scheme", "https"}, {":authority", address}, {":path", path},
			{"authorization", "Bearer " + testToken},
		} {
			must(t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
		}
		must(t, w.framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true,
		}))
	}
	return w
}

// read reads until done, and fails if an event is missing, comes twice, or out
// of order: each has the revision after the one before.
func (w *rawWatches) read(done func() bool) {
	for !done() {
		frame, err := w.framer.ReadFrame()
		if err != nil {
			w.t.Error(err)
			return
		}
		data, ok := frame.(*http2.DataFrame)
		if !ok {
			if reset, ok := frame.(*http2.RSTStreamFrame); ok {
				w.t.Errorf("stream %d was reset: %v", reset.StreamID, reset.ErrCode)
				return
			}
			continue
		}
		if err := w.data(data); err != nil {
			w.t.Error(err)
			return
		}
	}
}

func (w *rawWatches) data(f *http2.DataFrame) error {
	id := f.StreamID
	if w.mute[id] {
		w.owed[id] += f.Length
	} else if err := w.framer.WriteWindowUpdate(id, f.Length); err != nil {
		return err
	}
	rest := append(w.rest[id], f.Data()...)
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			break
		}
		rest = after
		var revision int
		_, digits, _ := bytes.Cut(line, []byte(`"resourceVersion":"`))
		if _, err := fmt.Sscanf(string(digits[:min(20, len(digits))]), "%d", &revision); err != nil {
			return fmt.Errorf("stream %d: no event: %.100s", id, line)
		}
		if want := w.first + w.seen[id]; revision != want {
			return fmt.Errorf("stream %d: got revision %d, want %d", id, revision, want)
		}
		w.seen[id]++
	}
	w.rest[id] = bytes.Clone(rest)
	return nil
}

// unmute lets a stream go on.
func (w *rawWatches) unmute(id uint32) {
	w.mute[id] = false
	must(w.t, w.framer.WriteWindowUpdate(id, w.owed[id]))
}

// TestSlowReaders has one stream that never opens its window, and one connection
// from which the client does not read. All other streams must get everything
// before either of them goes on. The slow stream then gets what it has missed.
func TestSlowReaders(t *testing.T) {
	c := newCluster(t)
	const connections, streams, events = 4, 25, 200
	first := int(c.put(benchPod(0))) + 1
	path := fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d", first-1)
	watches := make([]*rawWatches, connections+1)
	for i := range watches {
		receive := 0
		if i == connections {
			receive = 4 << 10
		}
		watches[i] = openRaw(t, c, streams, receive, path)
		watches[i].first = first
	}
	const slow = 2*7 + 1 // a stream in the middle
	watches[0].mute[slow] = true
	for range events {
		c.put(benchPod(0))
	}
	var readers sync.WaitGroup
	for _, w := range watches[:connections] { // the client does not read from the last
		readers.Go(func() {
			w.read(func() bool {
				for id := uint32(1); id < 2*streams; id += 2 {
					if w.seen[id] < events && !w.mute[id] {
						return false
					}
				}
				return true
			})
		})
	}
	readers.Wait()
	got := watches[0].seen[slow]
	if got == 0 || got >= events {
		t.Fatalf("the slow stream got %d of %d events: it was not slow, or never served", got, events)
	}
	watches[0].unmute(slow)
	watches[0].read(func() bool { return watches[0].seen[slow] == events })
	c.put(benchPod(0)) // and it is awake again, as all others
	watches[0].read(func() bool {
		for id := uint32(1); id < 2*streams; id += 2 {
			if watches[0].seen[id] < events+1 {
				return false
			}
		}
		return true
	})
}

// TestWatchesComeAndGo opens and cancels watches of one connection, some in
// the middle of an event, while objects are written: each of them gets every
// change after its version, and those that stay do not suffer.
func TestWatchesComeAndGo(t *testing.T) {
	c := newCluster(t)
	last := c.put(benchPod(0))
	path := fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d", last)
	const lanes, rounds, most = 12, 8, 20
	for range most {
		c.put(benchPod(0))
	}
	read := make(chan struct{}, lanes*rounds*most)
	var group sync.WaitGroup
	for lane := range lanes {
		group.Go(func() {
			for round := range rounds {
				stream := c.watch(path)
				for want := last + 1; want <= last+storage.Revision(1+(lane*7+round*5)%most); want++ {
					var e frame
					if err := stream.decoder.Decode(&e); err != nil {
						t.Error(err)
						return
					}
					if got := e.String(); !strings.HasSuffix(got, fmt.Sprint("@", want)) {
						t.Errorf("got %s, want revision %d", got, want)
						return
					}
					read <- struct{}{}
				}
				stream.close()
			}
		})
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for range read {
			c.put(benchPod(0))
		}
	})
	group.Wait()
	close(read)
	writer.Wait()
	untilIdle(t, c.server.metrics.Watches.WithLabelValues("", "v1", "pods"))
	if n := c.server.streams.Connections(); n != 0 {
		t.Errorf("%d schedulers are left without a watch", n)
	}
}
