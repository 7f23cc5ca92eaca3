package controller

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoggerOfACallHasItsKey(t *testing.T) {
	var text strings.Builder
	logger := slog.New(slog.NewJSONHandler(&text, nil))
	runFor(t, time.Minute, Options{Name: "widgets", Logger: logger}, func(ctx context.Context, _ Key) (Result, error) {
		Logger(ctx).Info("seen", "n", 1)
		return Result{}, nil
	})
	if log := text.String(); !strings.Contains(log, `"msg":"seen","controller":"widgets","key":"`+key.String()+`","n":1}`) {
		t.Errorf("logged %s", log)
	}
	if Logger(context.Background()) != slog.Default() {
		t.Error("outside a call there is another logger than slog's")
	}
}

// What goes wrong must be seen by programs that set no logger.
func TestWithoutALoggerFailuresGoToTheDefaultOne(t *testing.T) {
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, err := New(func(context.Context, Key) (Result, error) { panic("a bug") }, Options{Name: "widgets", Backoff: time.Minute, MaxBackoff: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		c.Add(key)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	if !strings.Contains(text.String(), "a bug") {
		t.Errorf("logged %q", text.String())
	}
}

// A controller that calls nothing for some time says why.
func TestStartsThatDoNotProgressAreLogged(t *testing.T) {
	nothing := func(context.Context, Key) (Result, error) { return Result{}, nil }
	for name, want := range map[string]string{"unstarted": "set RunOptions.Factory, or call factory.Start", "unwatched": "watches nothing", "fed": ""} {
		synctest.Test(t, func(t *testing.T) {
			var text strings.Builder
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c, err := New(nothing, Options{Name: "widgets", Logger: slog.New(slog.NewTextHandler(&text, nil))})
			if err != nil {
				t.Fatal(err)
			}
			switch name {
			case "unstarted":
				c.RequireSync("configmaps", never{})
			case "fed":
				c.Add(key)
			}
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
			log := text.String()
			if want == "" && log != "" || want != "" && strings.Count(log, want) != 1 || name == "unstarted" && !strings.Contains(log, "informers=configmaps") {
				t.Errorf("%s: logged %q", name, log)
			}
		})
	}
}

// A source that is added while the controller runs, and delivers nothing, is logged, too: an
// informer that is made later is easily not started.
func TestSourcesThatComeLaterAndDoNotProgressAreLogged(t *testing.T) {
	for name, wanted := range map[string]int{"unstarted": 1, "synced": 0, "removed": 0} {
		synctest.Test(t, func(t *testing.T) {
			var text strings.Builder
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			c, err := New(func(context.Context, Key) (Result, error) { return Result{}, nil },
				Options{Name: "widgets", Logger: slog.New(slog.NewTextHandler(&text, nil))})
			if err != nil {
				t.Fatal(err)
			}
			c.Add(key)
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			synctest.Wait()
			switch name {
			case "synced":
				listed := make(step)
				close(listed)
				c.RequireSync("configmaps", listed)
			case "removed":
				c.RequireSync("configmaps", never{}).Remove()
			default:
				c.RequireSync("configmaps", never{})
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if n := strings.Count(text.String(), "informer=configmaps"); n != wanted {
				t.Errorf("%s: logged %d times, want %d: %q", name, n, wanted, text.String())
			}
		})
	}
}
