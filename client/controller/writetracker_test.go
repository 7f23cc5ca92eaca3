package controller

import (
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
