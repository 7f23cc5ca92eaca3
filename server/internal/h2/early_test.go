package h2

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

// refuse answers before it has read anything of the body.
func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "who are you?", http.StatusUnauthorized)
}

// until reads the answer of a stream and then on to the acknowledgement of a PING
// that is sent behind it. It returns what came of the stream.
func (p *peer) until(id uint32) (status, text string, reset *http2.RSTStreamFrame) {
	p.t.Helper()
	ended := false
	for {
		switch f := p.read().(type) {
		case *http2.MetaHeadersFrame:
			status = f.PseudoValue("status")
		case *http2.DataFrame:
			text += string(f.Data())
			if f.StreamEnded() && !ended {
				ended = true
				must(p.t, p.framer.WritePing(false, [8]byte{1}))
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				frame := *f
				reset = &frame
				if !ended {
					return status, text, reset
				}
			}
		case *http2.PingFrame:
			if f.IsAck() {
				return status, text, reset
			}
		}
	}
}

// TestEarlyAnswersArrive: an answer that comes before the end of the request's body
// is not followed by a reset while the client may still be reading it.
func TestEarlyAnswersArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, refuse, func(o *Options) { o.StreamWindow, o.ConnWindow = 100_000, 150_000 })
		p := f.dial().greet()
		body := make([]byte, 10_000)
		for range 100 { // the body is discarded: the connection's window does not run out
			id := p.open(false, post()...)
			must(t, p.framer.WriteData(id, false, body))
			if status, text, reset := p.until(id); status != "401" || !strings.Contains(text, "who") || reset != nil {
				t.Fatalf("%s %q, then %v", status, text, reset)
			}
			must(t, p.framer.WriteData(id, true, body))
		}
		synctest.Wait()
		must(t, p.framer.WritePing(false, [8]byte{2}))
		for {
			switch f := p.read().(type) {
			case *http2.RSTStreamFrame:
				t.Fatalf("stream %d was reset after its body had ended: %v", f.StreamID, f.ErrCode)
			case *http2.PingFrame:
				if f.IsAck() {
					return
				}
			}
		}
	})
}

// TestEarlyAnswersDoNotWaitForEver: the rest of a body is waited for only so long, on
// so many streams, and up to the stream's window.
func TestEarlyAnswersDoNotWaitForEver(t *testing.T) {
	t.Run("time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := startInMemory(t, refuse).dial().greet()
			id := p.open(false, post()...)
			_, _, early := p.until(id)
			if early != nil {
				t.Fatalf("reset with the answer: %v", early)
			}
			if got := p.outcome(); got != (outcome{code: http2.ErrCodeNo, stream: id}) {
				t.Errorf("got %+v", got)
			}
		})
	})
	t.Run("streams", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const most = 10
			p := startInMemory(t, refuse, func(o *Options) { o.MaxConcurrentStreams = most }).dial().greet()
			waiting := 0
			for range 3 * most {
				if _, _, reset := p.until(p.open(false, post()...)); reset == nil {
					waiting++
				} else if reset.ErrCode != http2.ErrCodeNo {
					t.Fatal(reset.ErrCode)
				}
			}
			if waiting == 0 || waiting > most {
				t.Errorf("%d streams wait for the rest of their bodies", waiting)
			}
		})
	})
	t.Run("bytes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := startInMemory(t, refuse, func(o *Options) { o.StreamWindow, o.ConnWindow = 1000, 100_000 }).dial().greet()
			id := p.open(false, post()...)
			p.until(id)
			must(t, p.framer.WriteData(id, false, make([]byte, 1000)))
			must(t, p.framer.WriteData(id, false, make([]byte, 1000)))
			if got := p.outcome(); got != (outcome{code: http2.ErrCodeFlowControl, stream: id}) {
				t.Errorf("got %+v", got)
			}
		})
	})
	t.Run("drain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := startInMemory(t, refuse)
			p := f.dial().greet()
			id := p.open(false, post()...)
			p.until(id)
			done := make(chan error, 1)
			go func() { done <- f.server.Shutdown(t.Context()) }()
			synctest.Wait()
			must(t, p.framer.WriteData(id, true, []byte("the end")))
			if _, last := p.ends(true); last == nil || last.LastStreamID != id {
				t.Errorf("ended with %+v", last)
			}
			must(t, <-done)
		})
	})
}

// TestCurlGetsEarlyAnswers: curl 7.88 loses an answer that a reset follows at once.
func TestCurlGetsEarlyAnswers(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl")
	}
	f := start(t, refuse)
	file := filepath.Join(t.TempDir(), "body")
	must(t, os.WriteFile(file, make([]byte, 3<<20), 0o600))
	for range 10 {
		out, err := exec.Command(curl, "-sk", "--http2", "--max-time", "60", "-o", "-", "-w", " %{http_code}",
			"-X", "POST", "--data-binary", "@"+file, f.url("/")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "who are you?") || !strings.HasSuffix(string(out), " 401") {
			t.Fatalf("curl: %v: %q", err, out)
		}
	}
}
