package informer

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/reflector"
)

// Without a logger, the informer and its reflector write to the program's
// default one.
func TestNilLoggerIsTheDefaultOne(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	synctest.Test(t, func(t *testing.T) {
		i := New[*corev1.Pod]("pods", newScript(), reflector.Options{PagedList: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{"msg=synced informer=pods", "msg=listed reflector=pods"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, log.String())
		}
	}
}
