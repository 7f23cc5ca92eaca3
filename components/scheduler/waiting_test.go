package scheduler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
)

// TestWaitingPodsBackOff: 1000 pods fit nowhere, and room that is none for them appears every 100 ms for a minute. When
// all of them were tried again each time, these were 600,000 decisions.
func TestWaitingPodsBackOff(t *testing.T) {
	const pods, events, gap = 1000, 600, 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		l := newWaitlist()
		tries := map[types.NamespacedName][]time.Time{}
		refuse := func(key types.NamespacedName, priority int) {
			if priority != 7 {
				t.Errorf("%s has priority %d", key, priority)
			}
			tries[key] = append(tries[key], time.Now())
		}
		try := func(seek func(func(types.NamespacedName, int))) {
			var found []types.NamespacedName
			seek(func(key types.NamespacedName, priority int) { refuse(key, priority); found = append(found, key) })
			for _, key := range found {
				if l.refuse(key, 7, l.roomsSeen()) {
					t.Error("room has appeared out of nothing")
				}
			}
		}
		for i := range pods {
			key := types.NamespacedName{Name: fmt.Sprint(i)}
			l.refuse(key, 7, 0)
		}
		for range events {
			time.Sleep(gap)
			try(l.room)
			try(func(retry func(types.NamespacedName, int)) { l.next(retry) })
		}
		for key, at := range tries {
			if first := at[0].Sub(at[len(at)-1]) + (events-1)*gap; first > longestBackOff+gap {
				t.Fatalf("%s was not tried for %v", key, first)
			}
			for i, least := 1, firstBackOff; i < len(at); i++ {
				if wait := at[i].Sub(at[i-1]); wait < least || wait > least+gap {
					t.Fatalf("%s was tried after %v, want %v", key, wait, least)
				}
				least = min(2*least, longestBackOff)
			}
			if len(at) > 11 {
				t.Fatalf("%s was tried %d times in a minute", key, len(at))
			}
		}
		if len(tries) != pods {
			t.Errorf("%d pods were tried", len(tries))
		}
	})
}

// TestRoomIsUsedAfterTheBackOff: a pod that is refused again while room appears is not forgotten.
func TestRoomIsUsedAfterTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		pod := newPod("p", "1", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "full"}}
		})
		key := controller.KeyOf(pod)
		for range 3 {
			if _, err := s.postpone(t.Context(), pod, "full", s.waiting.roomsSeen(), false); err != nil {
				t.Fatal(err)
			}
		}
		go s.keepRetrying(t.Context())
		s.retryWaiting()
		synctest.Wait()
		if depth := s.loop.Stats().Queue.Depth; depth != 0 {
			t.Errorf("%d pods are tried within their back-off", depth)
		}
		time.Sleep(2 * firstBackOff)
		synctest.Wait()
		if depth := s.loop.Stats().Queue.Depth; depth != 1 {
			t.Errorf("%d pods are tried after it", depth)
		}
		s.podGone(pod)
		if len(s.waiting.known)+len(s.waiting.asleep)+len(s.waiting.delayed) > 0 {
			t.Errorf("%s is gone and known", key)
		}
	})
}

// TestForgottenWaitersAreNotTried: pods that have gone are in no list, whatever they waited for.
func TestForgottenWaitersAreNotTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newWaitlist()
		key := func(i int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprint(i)} }
		for range 2 {
			for i := range 100 {
				l.refuse(key(i), 0, 0)
			}
		}
		l.room(func(types.NamespacedName, int) { t.Error("tried within the back-off") })
		for i := range 100 {
			if i%10 != 0 {
				l.forget(key(i))
			}
		}
		time.Sleep(longestBackOff)
		tried := 0
		if after := l.next(func(types.NamespacedName, int) { tried++ }); after != 0 || tried != 10 {
			t.Errorf("%d are tried, and one in %v", tried, after)
		}
	})
}
