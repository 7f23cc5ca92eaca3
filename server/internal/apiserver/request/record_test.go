package request

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
)

// writes is a slot that knows whether a write is under way.
type writes struct{ begun bool }

func (w *writes) BeginWrite()     { w.begun = true }
func (w *writes) EndWrite() error { w.begun = false; return nil }

// TestWritesThatMayBlockAreGuarded over HTTP/1.1, to a client that reads nothing: while a handler
// waits for it, its slot is told of a write. Shorter answers are sent after their handlers have
// returned.
func TestWritesThatMayBlockAreGuarded(t *testing.T) {
	for _, parts := range [][]int{{1}, {2048}, {2049}, {3000, 1000}, {1, 4095}, {3900}, {4096}, {4097}, {100 << 10}} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slot writes
				began, returned := false, false
				client, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
					began = true
					rec := NewRecorder(w, r, &Record{})
					rec.GuardWrites(&slot)
					size := 0
					for _, n := range parts {
						size += n
					}
					rec.Header().Set("Content-Length", strconv.Itoa(size))
					rec.Header().Set("Warning", strings.Repeat("x", 1000)) // is sent together with the body
					for _, n := range parts {
						_, _ = rec.Write(make([]byte, n)) // fails when the test ends
					}
					returned = true
				})
				defer stop()
				if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // the server cannot write to the pipe
				if !began || !returned && !slot.begun {
					t.Errorf("begun: %v; the handler waits for the client, and its slot does not know", began)
				}
			})
		})
	}
}

// serve serves one connection, whose writes block until they are read, and returns the client's end.
func serve(t *testing.T, handler http.HandlerFunc) (client net.Conn, stop func()) {
	t.Helper()
	client, conn := net.Pipe()
	listener := &single{conn: make(chan net.Conn, 1)}
	listener.conn <- conn
	server, ended := &http.Server{Handler: handler}, make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // http.ErrServerClosed
	}()
	return client, func() {
		client.Close()
		server.Close()
		<-ended
	}
}

// single is a listener with one connection.
type single struct{ conn chan net.Conn }

func (l *single) Accept() (net.Conn, error) {
	if conn, ok := <-l.conn; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l *single) Close() error {
	close(l.conn)
	return nil
}

func (l *single) Addr() net.Addr { return &net.TCPAddr{} }

// annotated is an audit that takes annotations.
type annotated struct {
	Audit
	got []string
}

func (a *annotated) Annotate(key, value string) { a.got = append(a.got, key+"="+value) }

// timed is an audit that is told how long the parts of a request take.
type timed struct {
	Audit
	keeps bool
	took  []reporter.Part
}

func (a *timed) KeepsTimes() bool                         { return a.keeps }
func (a *timed) Took(part reporter.Part, _ time.Duration) { a.took = append(a.took, part) }
func (a *timed) Started(int)                              {}
func (a *timed) KeepsResponse() bool                      { return false }

// TestMeasurements: the parts of an audited request are measured, wherever they are in it. A
// request that is not pays nothing for it.
func TestMeasurements(t *testing.T) {
	parts := func(record *Record) {
		ctx := WithRecord(t.Context(), record)
		reporter.Measure(ctx, reporter.Storage).End()
		record.Measure(reporter.QueueWait).End()
		w := NewRecorder(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), record)
		encoding := MeasureAnswer(w)
		_, _ = w.Write([]byte("x"))
		encoding.End()
	}
	all := []reporter.Part{reporter.Storage, reporter.QueueWait, reporter.ResponseWrite, reporter.Serialization}
	for keeps, want := range map[bool][]reporter.Part{true: all, false: nil} {
		audit, record := &timed{keeps: keeps}, &Record{}
		record.BeginAudit(audit)
		parts(record)
		if !slices.Equal(audit.took, want) {
			t.Errorf("measured %v, want %v", audit.took, want)
		}
	}
	record := &Record{}
	record.BeginAudit(nil)
	parts(record)
	ctx := WithRecord(t.Context(), record)
	if n := testing.AllocsPerRun(100, func() {
		reporter.Measure(ctx, reporter.Storage).End()
		record.Measure(reporter.QueueWait).End()
	}); n > 0 {
		t.Errorf("%v allocations for a request that is not audited", n)
	}
	reporter.Measure(t.Context(), reporter.Storage).End() // the server's own
}

// TestEarlyAnnotations: what the authentication says of a request is audited, although the audit
// begins when the user is known.
func TestEarlyAnnotations(t *testing.T) {
	audit, record := &annotated{}, &Record{}
	record.Annotate("early", "1")
	record.BeginAudit(audit)
	record.Annotate("late", "2")
	if got := strings.Join(audit.got, " "); got != "early=1 late=2" {
		t.Errorf("audited: %s", got)
	}
	record = &Record{}
	record.Annotate("early", "1")
	record.BeginAudit(nil)
	record.Annotate("late", "2")
	if record.early != nil {
		t.Errorf("of a request that is not audited, %v is kept", record.early)
	}
}
