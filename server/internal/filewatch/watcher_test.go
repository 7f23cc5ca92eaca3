package filewatch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/levelwire/levelwire/internal/atomicfile"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// TestReload: a change is used within a second; what cannot be used is logged once, and
// leaves what was there.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(content string) {
		t.Helper()
		if err := atomicfile.Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		var inForce string
		w := New(slog.New(slog.NewTextHandler(&logged, nil)))
		err := w.Watch("some-file", []string{path}, func(contents [][]byte) error {
			if string(contents[0]) == "bad" {
				return errors.New("this is bad")
			}
			inForce = string(contents[0])
			return nil
		})
		if err != nil || inForce != "one" {
			t.Fatalf("%q, %v", inForce, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()
		after := func(want string) {
			t.Helper()
			time.Sleep(3 * interval)
			synctest.Wait()
			if inForce != want {
				t.Errorf("%q is in force, want %q", inForce, want)
			}
		}
		write("two")
		after("two")
		write("bad")
		after("two")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		after("two")
		write("two") // as it was: nothing failed for good
		after("two")
		write("six")
		after("six")
		if got := strings.Count(logged.String(), "level=ERROR"); got != 2 || !strings.Contains(logged.String(), "this is bad") {
			t.Errorf("%d errors logged, want 2:\n%s", got, logged.String())
		}
		if got := testutil.ToFloat64(w.reloads.WithLabelValues("some-file", "failure")); got != 2 {
			t.Errorf("%v failures counted", got)
		}
	})
}

// TestSlowFile: a file whose use takes long delays no other, what failed is not tried
// again before it changes, and both are counted.
func TestSlowFile(t *testing.T) {
	dir := t.TempDir()
	slow, fast := filepath.Join(dir, "slow"), filepath.Join(dir, "fast")
	write := func(path, content string) {
		t.Helper()
		if err := atomicfile.Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(slow, "one")
	write(fast, "one")
	synctest.Test(t, func(t *testing.T) {
		w := New(slog.New(slog.DiscardHandler))
		tries, inForce := 0, ""
		err := w.WatchSeparately("slow-file", slow, func(content []byte) error {
			tries++
			if string(content) == "one" {
				return nil
			}
			time.Sleep(10 * interval)
			return errors.New("this is bad")
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Watch("fast-file", []string{fast}, func(contents [][]byte) error { inForce = string(contents[0]); return nil }); err != nil {
			t.Fatal(err)
		}
		hash := w.Stats("slow-file").Hash
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()
		write(slow, "two")
		time.Sleep(2 * interval)
		write(fast, "two")
		time.Sleep(2 * interval)
		synctest.Wait()
		if inForce != "two" {
			t.Error("a slow file delays another one")
		}
		time.Sleep(40 * interval)
		synctest.Wait()
		if got := w.Stats("slow-file"); tries != 2 || got.Failed != 1 || got.Succeeded != 0 || got.LastFailure.IsZero() || hash == "" || got.Hash != hash {
			t.Errorf("tried %d times: %+v", tries, got)
		}
		if got := w.Stats("fast-file"); got.Succeeded != 1 || got.LastSuccess.IsZero() {
			t.Errorf("the other file: %+v", got)
		}
	})
}

// TestFirstRead: a file that cannot be used at the start is an error that names its flag
// and path.
func TestFirstRead(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler))
	path := filepath.Join(t.TempDir(), "none")
	if err := w.Watch("some-file", []string{path}, func([][]byte) error { return nil }); err == nil || !strings.Contains(err.Error(), "--some-file: open "+path) {
		t.Errorf("%v", err)
	}
	w.Run(t.Context()) // has nothing to watch: returns
}

// TestRefusedForAnotherFile: content that another file's content rules out is used when
// that one has changed, and its error is logged once.
func TestRefusedForAnotherFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := atomicfile.Write(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first", "a")
	write("second", "b")
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		w := New(slog.New(slog.NewTextHandler(&logged, nil)))
		inForce := map[string]string{}
		for _, name := range []string{"first", "second"} {
			err := w.Watch(name, []string{filepath.Join(dir, name)}, func(contents [][]byte) error {
				for other, content := range inForce {
					if other != name && content == string(contents[0]) {
						return errors.New("both are the same")
					}
				}
				inForce[name] = string(contents[0])
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		write("first", "b")
		time.Sleep(5 * interval)
		write("second", "c")
		time.Sleep(5 * interval)
		cancel()
		<-done
		if inForce["first"] != "b" || inForce["second"] != "c" {
			t.Errorf("in force: %v", inForce)
		}
		if got := strings.Count(logged.String(), "level=ERROR"); got != 1 {
			t.Errorf("%d errors logged, want 1:\n%s", got, logged.String())
		}
	})
}
