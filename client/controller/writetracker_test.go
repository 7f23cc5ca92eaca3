package controller

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWriteTrackerFindsTheStateBeforeAWriteStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := func(version string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: version}}
		}
		v := NewWriteTracker()
		if v.IsStale(pod("5")) {
			t.Error("behind without a write")
		}
		v.Record(pod("10"))
		if !v.IsStale(pod("9")) {
			t.Error("9 is not behind 10") // as text it is greater
		}
		if v.IsStale(pod("10")) || v.IsStale(pod("9")) {
			t.Error("the write is remembered after it was seen")
		}
		v.Record(pod("20"))
		time.Sleep(expectationTimeout)
		if v.IsStale(pod("19")) {
			t.Error("waits for ever")
		}
	})
}

// TestWriteTrackerBringsTheKeyBack: a key whose object is behind the controller's own write comes back
// when its informer shows that, however long nothing else happens to the key.
func TestWriteTrackerBringsTheKeyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := func(version int) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: strconv.Itoa(version)}}
		}
		pods, read := hold("pods", 9), make(chan int, 10)
		written := NewWriteTracker()
		c := made(t, func(ctx context.Context, _ Key) (Result, error) {
			now := pods.version()
			read <- now
			return Result{}, written.Current(ctx, pod(now))
		}, Options{})
		c.RequireSync("pods", pods)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		written.Record(pod(10))
		c.Add(key)
		time.Sleep(catchUpTimeout - time.Second)
		synctest.Wait()
		if asked := pods.asked; !slices.Equal(asked, []string{"10"}) || len(read) != 1 {
			t.Errorf("the informer was asked for %q, and %d calls", asked, len(read))
		}
		pods.show(10)
		synctest.Wait()
		if stats := c.Stats(); len(read) != 2 || stats.Failures != 0 || stats.PutOffs != 1 {
			t.Errorf("%d calls, %+v", len(read), stats)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestWriteTrackerOfAnObjectFromElsewhere: no informer of the controller can be waited for.
func TestWriteTrackerOfAnObjectFromElsewhere(t *testing.T) {
	written := NewWriteTracker()
	written.Record(&metav1.ObjectMeta{UID: "1", ResourceVersion: "10"})
	if err := written.Current(t.Context(), &metav1.ObjectMeta{UID: "1", ResourceVersion: "9"}); !errors.Is(err, errStale) {
		t.Error(err)
	}
}
