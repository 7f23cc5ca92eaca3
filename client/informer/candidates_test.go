package informer

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whatever their number, so many are held, and each has a chance to be.
func TestCandidatesAreBounded(t *testing.T) {
	const times = 100
	var c candidates
	for n := range times * maxCandidates {
		c.add(strconv.Itoa(n), "1")
		if c.more() != (n >= maxCandidates) {
			t.Fatalf("after %d: more is %v", n+1, c.more())
		}
	}
	if len(c.held) != maxCandidates || cap(c.held) > 2*maxCandidates {
		t.Errorf("%d are held, with room for %d", len(c.held), cap(c.held))
	}
	parts := [4]int{}
	keys := map[string]bool{}
	for _, held := range c.held {
		n, err := strconv.Atoi(held.key)
		if err != nil || keys[held.key] {
			t.Fatalf("%q is held twice, or is no key: %v", held.key, err)
		}
		keys[held.key] = true
		parts[n*len(parts)/(times*maxCandidates)]++
	}
	for part, n := range parts { // 2500 each, and 43 more or less
		if n < maxCandidates/8 {
			t.Errorf("%d are of quarter %d: %v", n, part, parts)
		}
	}
	c.drop(func(held candidate) bool { return held.key[len(held.key)-1] != '7' })
	if n := len(c.held); n == 0 || n > maxCandidates/5 || len(c.some(10)) != 10 || len(c.some(maxCandidates)) != n {
		t.Errorf("%d are left", n)
	}
}

// A cache that lacks more than a round may hold is completed in rounds that follow at once.
func TestConsistencyCheckAddsInParts(t *testing.T) {
	repairing(t, nil, func(s *script, i *SharedInformer[*corev1.Pod], r *record) {
		const missing = maxCandidates + 2*maxCorrections
		s.mu.Lock()
		for n := range missing { // without events
			name := "x" + strconv.Itoa(n)
			s.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "2"}}
		}
		s.mu.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		found, err := i.consistencyChecker.compare(ctx)
		if err != nil || len(found.differ.held) != maxCandidates || !found.differ.more() {
			t.Errorf("%d objects are held, %v", len(found.differ.held), err)
		}
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		if got := i.Stats().ConsistencyCheck; got.Rounds != missing/maxCorrections || got.Missing != missing || got.Abandoned != 0 {
			t.Errorf("%+v", got)
		}
		if calls := r.take(); len(calls) != missing || i.indexer.Len() != missing+3 {
			t.Errorf("%d calls, %d objects", len(calls), i.indexer.Len())
		}
	})
}
