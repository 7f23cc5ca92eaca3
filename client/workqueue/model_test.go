package workqueue

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// model is the queue as its documentation says, without any cleverness: what
// waits is a slice that is searched.
type model struct {
	now     time.Duration
	waits   []modelKey
	works   map[byte]int // key to the priority it was taken with
	again   map[byte]modelKey
	delayed map[byte]modelKey
	seq     int
	closing bool
}

type modelKey struct {
	key      byte
	priority int
	seq      int // when it got its priority
	due      time.Duration
}

func newModel() *model {
	return &model{works: map[byte]int{}, again: map[byte]modelKey{}, delayed: map[byte]modelKey{}}
}

func (m *model) add(key byte, priority int) {
	m.seq++
	if m.closing {
		return
	}
	if _, working := m.works[key]; working {
		if next, ok := m.again[key]; !ok || priority > next.priority {
			m.again[key] = modelKey{key: key, priority: priority}
		}
		return
	}
	at := slices.IndexFunc(m.waits, func(k modelKey) bool { return k.key == key })
	switch {
	case at < 0:
		m.waits = append(m.waits, modelKey{key: key, priority: priority, seq: m.seq})
	case m.waits[at].priority < priority:
		m.waits[at].priority, m.waits[at].seq = priority, m.seq
	}
}

func (m *model) addAfter(key byte, priority int, after time.Duration) {
	if after <= 0 {
		m.add(key, priority)
		return
	}
	if m.closing {
		return
	}
	due, ok := m.delayed[key]
	if !ok {
		due = modelKey{key: key, priority: priority, due: m.now + after}
	}
	due.priority, due.due = max(due.priority, priority), min(due.due, m.now+after)
	m.delayed[key] = due
}

func (m *model) get() (byte, bool) {
	if len(m.waits) == 0 {
		return 0, false
	}
	first := slices.MinFunc(m.waits, func(a, b modelKey) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.seq, b.seq))
	})
	m.waits = slices.DeleteFunc(m.waits, func(k modelKey) bool { return k.key == first.key })
	m.works[first.key] = first.priority
	return first.key, true
}

func (m *model) done(key byte) {
	if _, working := m.works[key]; !working {
		return
	}
	delete(m.works, key)
	if next, ok := m.again[key]; ok {
		m.seq++
		m.waits = append(m.waits, modelKey{key: key, priority: next.priority, seq: m.seq})
		delete(m.again, key)
	}
}

func (m *model) sleep(d time.Duration) {
	m.now += d
	var due []modelKey
	for key, k := range m.delayed {
		if k.due <= m.now {
			due = append(due, k)
			delete(m.delayed, key)
		}
	}
	slices.SortFunc(due, func(a, b modelKey) int { return cmp.Compare(a.due, b.due) })
	for _, k := range due {
		m.add(k.key, k.priority)
	}
}

func (m *model) shutDown() { m.closing, m.delayed = true, map[byte]modelKey{} }

// play does to a queue and to the model what the bytes say, and compares them
// after each step. It runs in a bubble.
func play(t *testing.T, script []byte) {
	t.Helper()
	q, m := New(Options[byte]{FairShare: -1}), newModel()
	defer q.ShutDown()
	// Every delay is different, so that no two keys are due at once.
	step := time.Duration(0)
	for n := 0; n+1 < len(script); n += 2 {
		what, key, priority := script[n]%8, script[n+1]%7, int(script[n]>>3%4)-1
		step++
		after := time.Duration(script[n+1]/7)*time.Hour/4 + step
		switch what {
		case 0:
			q.AddWith(key, AddOptions{Priority: priority})
			m.add(key, priority)
		case 1:
			q.AddWith(key, AddOptions{Priority: priority, After: after})
			m.addAfter(key, priority, after)
		case 2:
			q.AddAfter(key, after)
			m.addAfter(key, m.works[key], after)
		case 3, 4:
			got, ok, _ := q.take(t.Context())
			want, wanted := m.get()
			if got != want || ok != wanted {
				t.Fatalf("step %d: got %d, %v, want %d, %v", n/2, got, ok, want, wanted)
			}
		case 5:
			q.Done(key)
			m.done(key)
		case 6:
			time.Sleep(after)
			synctest.Wait()
			m.sleep(after)
		case 7:
			if script[n] == 255 {
				q.ShutDown()
				m.shutDown()
			} else {
				q.Add(key)
				m.add(key, 0)
			}
		}
		got := q.Stats()
		if got.Depth != len(m.waits) || got.Working != len(m.works) || got.Delayed != len(m.delayed) {
			t.Fatalf("step %d: %d wait, %d are worked on, %d are delayed; want %d, %d, %d", n/2,
				got.Depth, got.Working, got.Delayed, len(m.waits), len(m.works), len(m.delayed))
		}
		consistent(t, q)
	}
}

// consistent compares the queue's own books with each other.
func consistent(t *testing.T, q *Queue[byte]) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	held := map[byte]bool{}
	for _, in := range q.ready.all {
		if in.first == nil {
			t.Fatal("an empty level is kept")
		}
		n := 0
		for i := in.first; i != nil; i = i.next {
			held[i.key] = true
			n++
		}
		if n != in.n {
			t.Fatalf("a level of %d keys believes to have %d", n, in.n)
		}
	}
	for i := q.working.first; i != nil; i = i.next {
		held[i.key] = true
	}
	for place, i := range q.delayed {
		held[i.key] = true
		if i.place != place+1 {
			t.Fatalf("key %d is at place %d of the heap and believes %d", i.key, place+1, i.place)
		}
	}
	if len(held) != len(q.items) {
		t.Fatalf("%d keys are held and %d are known", len(held), len(q.items))
	}
}

func TestQueueAgainstAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for range 300 {
		script := make([]byte, 800)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		synctest.Test(t, func(t *testing.T) { play(t, script) })
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 3, 0, 0, 1, 5, 1, 3, 0})
	f.Add([]byte{1, 8, 9, 1, 6, 200, 3, 0, 2, 1, 255, 0, 5, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 2000 {
			return
		}
		synctest.Test(t, func(t *testing.T) { play(t, script) })
	})
}
