package controller

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recorded is what a mapping has done. Retries write it from goroutines of their own.
type recorded struct {
	mu    sync.Mutex
	calls int // of its MapFunc
	keys  []Key
}

func (r *recorded) get() (calls int, keys []Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls, slices.Clone(r.keys)
}

// panicking is a mapping whose MapFunc panics so many times.
func panicking(times int) (m mapping[*corev1.ConfigMap, Key], r *recorded) {
	r = &recorded{}
	m.fresh = func(key Key) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keys = append(r.keys, key)
	}
	m.low, m.when = m.fresh, And[*corev1.ConfigMap]()
	m.keys = func(obj *corev1.ConfigMap, add func(Key)) {
		r.mu.Lock()
		r.calls++
		panics := r.calls <= times
		r.mu.Unlock()
		if panics {
			panic("not now")
		}
		add(KeyOf(obj))
	}
	m.retries = newRetries[*corev1.ConfigMap](slog.New(slog.DiscardHandler))
	m.retries.again = m.enqueue
	return m, r
}

// contained calls the handler as an informer does.
func contained(call func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	call()
	return false
}

func TestPanicsOfMapFuncsLoseNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, done := panicking(3)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if !contained(func() { m.OnDelete(object, false) }) {
			t.Error("the informer does not learn of the panic")
		}
		for n, wait := range []time.Duration{retryBase, 2 * retryBase, 4 * retryBase} {
			time.Sleep(wait - time.Nanosecond)
			synctest.Wait()
			if calls, keys := done.get(); calls != n+1 || len(keys) != 0 {
				t.Errorf("%d calls, %d keys, before retry %d", calls, len(keys), n+1)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
		}
		calls, keys := done.get()
		if calls != 4 || len(keys) != 1 || keys[0].Name != "a" {
			t.Fatalf("keys %v after %d calls", keys, calls)
		}
		time.Sleep(time.Hour)
		if calls, _ := done.get(); calls != 4 || m.retries.attempts.Requeues(keys[0]) != 0 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestRetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, done := panicking(1_000_000)
		for range maxRetries + 1 {
			contained(func() { m.OnAdd(new(corev1.ConfigMap), true) })
		}
		if len(m.retries.waiting) != maxRetries {
			t.Errorf("%d wait", len(m.retries.waiting))
		}
		m.retries.stop()
		before, _ := done.get()
		contained(func() { m.OnAdd(new(corev1.ConfigMap), true) })
		time.Sleep(time.Hour)
		if calls, _ := done.get(); calls != before+1 || len(m.retries.waiting) != 0 {
			t.Errorf("%d calls after the end, %d wait", calls-before, len(m.retries.waiting))
		}
	})
}
