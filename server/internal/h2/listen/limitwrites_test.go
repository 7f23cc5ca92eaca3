package listen

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/internal/faultnet"
)

// TestWritesAreLimited has a client that never reads. A deadline that the
// connection's user sets, later or earlier, holds until it is taken away.
func TestWritesAreLimited(t *testing.T) {
	for _, tt := range []struct {
		name     string
		deadline func(net.Conn) error
		from, to time.Duration
	}{
		{"the limit", func(net.Conn) error { return nil }, 10 * time.Second, 15 * time.Second},
		{"an earlier deadline", func(c net.Conn) error { return c.SetWriteDeadline(time.Now().Add(time.Second)) }, time.Second, time.Second},
		{"a later deadline", func(c net.Conn) error { return c.SetDeadline(time.Now().Add(time.Hour)) }, time.Hour, time.Hour},
		{"a deadline that was taken away", func(c net.Conn) error {
			return errors.Join(c.SetDeadline(time.Now().Add(time.Hour)), c.SetDeadline(time.Time{}))
		}, 10 * time.Second, 15 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pipe := faultnet.NewPipe()
				defer pipe.Close()
				go func() {
					client, err := pipe.Dial(t.Context(), "tcp", "x")
					if err == nil {
						<-t.Context().Done()
						client.Close()
					}
				}()
				conn, err := LimitWrites(pipe, 10*time.Second).Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_, err = conn.Write([]byte("x"))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second) // the limit is one write's
				if err := tt.deadline(conn); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for err == nil {
					_, err = conn.Write(make([]byte, 64<<10))
				}
				if after := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || after < tt.from || after > tt.to {
					t.Errorf("%v after %v", err, after)
				}
			})
		})
	}
}
