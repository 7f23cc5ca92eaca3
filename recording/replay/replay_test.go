package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/recording/replay"
	"github.com/levelwire/levelwire/storage"
)

// memoryFile is a recording.File.
type memoryFile struct{ bytes.Buffer }

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.Bytes()).ReadAt(p, at)
}

// sample is a recording of one pod at the start at 10, and 20 changes, one a second.
func sample(t *testing.T) *recording.Reader {
	t.Helper()
	file, began := new(memoryFile), time.Unix(1_800_000_000, 0)
	w, err := recording.NewWriter(file, recording.Info{}, recording.WriterOptions{CheckpointBytes: 300})
	check(t, err)
	for _, name := range []string{"pods", "gadgets"} {
		_, err = w.AddResource(recording.Resource{Version: "v1", Resource: name})
		check(t, err)
	}
	check(t, w.State(recording.Object{Revision: 7, Created: 1, Key: "ns/first", Value: []byte(`"first"`)}))
	check(t, w.EndState(10, began))
	for i := range int64(20) {
		e := recording.Entry{Type: recording.Set, Time: began.Add(time.Duration(i+1) * time.Second), Revision: 11 + i, Created: 11 + i, Key: fmt.Sprint("ns/", i%3), Value: fmt.Appendf(nil, `"%d"`, i)}
		if i%3 == 2 && i > 3 {
			e.Type, e.Value = recording.Delete, nil
		}
		check(t, w.Event(e))
	}
	check(t, w.Event(recording.Entry{Type: recording.Set, Resource: 1, Time: began.Add(21 * time.Second), Revision: 31, Key: "ns/gadget"}))
	check(t, w.Close())
	r, err := recording.NewReader(file, int64(file.Len()))
	check(t, err)
	t.Cleanup(func() { check(t, r.Close()) })
	return r
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func layout(_, _, resource string) (string, func([]byte) ([]byte, error), bool) {
	return "/registry/" + resource + "/", nil, resource == "pods"
}

func open(t *testing.T, at int64) (*replay.Store, *replay.Player) {
	t.Helper()
	s, p, unserved, err := replay.Open(sample(t), replay.Options{Layout: layout, At: at})
	check(t, err)
	if fmt.Sprint(unserved) != "[gadgets (v1)]" {
		t.Error("not served are", unserved)
	}
	t.Cleanup(func() { check(t, s.Close()) })
	return s, p
}

// keys lists the state at a revision as key=value@modified.
func keys(t *testing.T, s *replay.Store, at storage.Revision) string {
	t.Helper()
	page, err := s.List(t.Context(), "/registry/pods/", storage.ListOptions{At: at})
	check(t, err)
	var list []string
	for _, kv := range page.Items {
		list = append(list, fmt.Sprintf("%s=%s@%d", strings.TrimPrefix(kv.Key, "/registry/pods/ns/"), kv.Value, kv.Modified))
	}
	return strings.Join(list, " ")
}

// run lets a player run until the test is over. It ends before its recording is closed.
func run(t *testing.T, p *replay.Player) {
	ended := make(chan error)
	go func() { ended <- p.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestPlaysAtTheRecordedPace follows the store while time passes.
func TestPlaysAtTheRecordedPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := open(t, 0)
		run(t, p)
		stream, err := s.Watch(t.Context(), "/registry/", 10)
		check(t, err)
		at := func(want storage.Revision) {
			t.Helper()
			synctest.Wait()
			if got, err := s.Current(t.Context()); got != want || err != nil {
				t.Fatalf("the store is at %d instead of %d: %v", got, want, err)
			}
		}
		time.Sleep(time.Minute)
		at(10)
		check(t, p.Play(1))
		time.Sleep(3500 * time.Millisecond)
		at(13)
		check(t, p.Play(2))
		time.Sleep(2 * time.Second) // half a second of the former change is waited for anew
		at(17)
		p.Pause()
		time.Sleep(time.Hour)
		at(17)
		p.Step(2)
		at(19)
		check(t, p.GoTo(22))
		at(22)
		time.Sleep(time.Hour)
		at(22)
		check(t, p.Play(replay.MaxSpeed))
		at(31)
		if status := p.Status(); !status.Ended || status.Error != "" {
			t.Errorf("%+v", status)
		}
		for next := storage.Revision(11); next <= 30; {
			batch, err := stream.Next()
			check(t, err)
			for _, e := range batch.Events {
				if e.Revision != next || !e.Deleted && string(e.Value) != fmt.Sprintf(`"%d"`, next-11) {
					t.Fatalf("%+v instead of the change at %d", e, next)
				}
				next++
			}
		}
	})
}

// TestReadsThePast lists at every revision that was reached.
func TestReadsThePast(t *testing.T) {
	s, p := open(t, 16)
	if got := keys(t, s, 0); got != `0="3"@14 1="4"@15 first="first"@7` {
		t.Error("at 16 there are", got)
	}
	if got := keys(t, s, 13); got != `0="0"@11 1="1"@12 2="2"@13 first="first"@7` {
		t.Error("at 13 there are", got)
	}
	if _, err := s.List(t.Context(), "/", storage.ListOptions{At: 17}); !errors.Is(err, storage.ErrFutureRevision) {
		t.Error("at 17:", err)
	}
	if _, err := s.Get(t.Context(), "/registry/pods/ns/0", 9); !errors.Is(err, storage.ErrCompacted) {
		t.Error("at 9:", err)
	}
	if _, err := s.Watch(t.Context(), "/", 9); !errors.Is(err, storage.ErrCompacted) {
		t.Error("a watch after 9:", err)
	}
	kv, err := s.Get(t.Context(), "/registry/pods/ns/0", 12)
	if err != nil || string(kv.Value) != `"0"` || kv.Created != 11 {
		t.Errorf("%+v %v", kv, err)
	}
	var events []storage.Revision
	check(t, s.Replay(t.Context(), "/registry/pods/ns/0", 12, 16, func(batch []storage.Event) error {
		for _, e := range batch {
			events = append(events, e.Revision)
		}
		return nil
	}))
	if fmt.Sprint(events) != "[14]" {
		t.Error("changed at", events)
	}
	if err := p.GoTo(12); err == nil {
		t.Error("it goes back")
	}
	if _, _, _, err := replay.Open(sample(t), replay.Options{Layout: layout, At: 99}); err == nil {
		t.Error("it begins after its end")
	}
}

// TestWritesAreRefused tries all writes.
func TestWritesAreRefused(t *testing.T) {
	s, _ := open(t, 0)
	_, created := s.Create(t.Context(), "/a", nil, 0)
	_, updated := s.Update(t.Context(), "/a", nil, 1, 0)
	_, deleted := s.Delete(t.Context(), "/a", 1)
	for _, err := range []error{created, updated, deleted, s.Compact(t.Context(), 12)} {
		if !errors.Is(err, storage.ErrReadOnly) {
			t.Error(err)
		}
	}
}

// TestStreamsEnd ends a stream by its context, and by the store.
func TestStreamsEnd(t *testing.T) {
	s, _ := open(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	first, err := s.Watch(ctx, "/", 10)
	check(t, err)
	second, err := s.Watch(t.Context(), "/", 10)
	check(t, err)
	cancel()
	if _, err := first.Next(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	check(t, s.Close())
	if _, err := second.Next(); !errors.Is(err, storage.ErrClosed) {
		t.Error(err)
	}
}

// TestControl drives a player over HTTP and by lines.
func TestControl(t *testing.T) {
	_, p := open(t, 0)
	run(t, p)
	server := httptest.NewServer(p.Handler())
	defer server.Close()
	ask := func(method, path string, header http.Header) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		check(t, err)
		r.Header = header
		if host := header.Get("Host"); host != "" {
			r.Host = host
		}
		resp, err := http.DefaultClient.Do(r)
		check(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		check(t, err)
		return resp.StatusCode, string(body)
	}
	for _, c := range []struct {
		method, path string
		header       http.Header
		code         int
		has          string
	}{
		{"GET", "/", nil, 200, `"paused":true`},
		{"POST", "/play?speed=10", nil, 200, `"speed":10`},
		{"POST", "/pause", nil, 200, `"paused":true`},
		{"POST", "/step?n=x", nil, 400, "number"},
		{"POST", "/goto?version=99", nil, 400, "99"},
		{"POST", "/play?speed=-1", nil, 400, "speed"},
		{"POST", "/play", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403, ""},
		{"GET", "/", http.Header{"Host": {"evil.example"}}, 403, ""},
	} {
		if code, body := ask(c.method, c.path, c.header); code != c.code || !strings.Contains(body, c.has) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, body)
		}
	}
	var out bytes.Buffer
	check(t, p.ReadCommands(strings.NewReader("status\n\ndance\n"), &out))
	if !strings.Contains(out.String(), "paused") || !strings.Contains(out.String(), `"dance" is none`) {
		t.Error(out.String())
	}
}
