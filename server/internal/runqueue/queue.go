package runqueue

import (
	"container/list"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// quantum is how often tasks are looked for that count although they wait for
	// something, while others wait for their turns. It is as long as the processor time
	// of a list of a megabyte.
	quantum = 5 * time.Millisecond
	// usersAtOnce is how many users' handlers may compute at the same time if each of them
	// has as many as one user may have.
	usersAtOnce = 4
)

// Queue is the run queue of a server. It is safe for concurrent use.
type Queue struct {
	perUser, total int // how many tasks may run at a time

	mu      sync.Mutex
	levels  []*level
	turn    float64 // level.due of the level that had the latest turn
	count   int     // tasks that run
	running Task    // head of the ring of these
	waiting int
	delayed int64 // how often a task has had to wait
	ticking bool  // timer is set
	timer   *time.Timer
}

// Level is the priority level of a request. Of the tasks that wait, those of a level with
// twice the shares of another have two turns for each of the other's.
type Level struct {
	Name   string
	Shares int // at least 1: less counts as that
}

// level is what the users of a Level do.
type level struct {
	Level
	users map[string]*user
	turns list.List // of *user: those with tasks that wait, in the order of their turns
	// due is when the level has its next turn, on a clock that shows in Queue.turn what a level
	// with one share has had if tasks of it waited all the time (start-time fair queueing).
	due float64
}

// user is what the tasks of a user do, as far as they are of one level.
type user struct {
	name    string
	level   *level
	tasks   int // that have started and not ended
	running int
	waiters taskQueue
	turn    *list.Element
}

// taskQueue is tasks that wait, the first of them first, linked by Task.next.
type taskQueue struct {
	first, last *Task
	length      int
}

func (w *taskQueue) Len() int { return w.length }

func (w *taskQueue) push(t *Task) {
	if w.length++; w.length == 1 {
		w.first = t
	} else {
		w.last.next = t
	}
	w.last = t
}

func (w *taskQueue) pop() *Task {
	t := w.first
	w.first, t.next = t.next, nil
	if w.length--; w.length == 0 {
		w.last = nil
	}
	return t
}

// New returns the queue of a process with as many processors as Go uses now.
func New() *Queue { return newQueue(runtime.GOMAXPROCS(0)) }

func newQueue(processors int) *Queue {
	q := &Queue{perUser: processors, total: usersAtOnce * processors}
	q.running.prev, q.running.next = &q.running, &q.running
	return q
}

// userOf returns the user of that name. mu is held, as in all functions below.
func (q *Queue) userOf(of Level, name string) *user {
	l := q.levelOf(of)
	u := l.users[name]
	if u == nil {
		u = &user{name: name, level: l}
		l.users[name] = u
	}
	return u
}

// levelOf returns the level of that name. There are a dozen.
func (q *Queue) levelOf(of Level) *level {
	for _, l := range q.levels {
		if l.Name == of.Name {
			l.Shares = of.Shares
			return l
		}
	}
	if len(q.levels) >= maxLevels {
		q.levels = slices.DeleteFunc(q.levels, (*level).idle)
	}
	l := &level{Level: of, users: map[string]*user{}}
	q.levels = append(q.levels, l)
	return l
}

const (
	// maxIdle is how many users of a level are remembered although they may have no tasks:
	// forgetting one costs more than most of its requests need of this package.
	maxIdle = 1024
	// maxLevels is how many levels are remembered although they may have no tasks.
	maxLevels = 64
)

func (q *Queue) forget(u *user) {
	if u.tasks == 0 && len(u.level.users) > maxIdle {
		delete(u.level.users, u.name)
	}
}

func (l *level) idle() bool {
	for _, u := range l.users {
		if u.tasks > 0 {
			return false
		}
	}
	return true
}

// admits reports whether one more task of a user may run.
func (q *Queue) admits(u *user) bool { return u.running < q.perUser && q.count < q.total }

// run has a task run.
func (q *Queue) run(t *Task) {
	t.state, t.seen = running, false
	t.prev, t.next = q.running.prev, &q.running
	t.prev.next, t.next.prev = t, t
	t.user.running++
	q.count++
}

// stop has a task that runs count no more. The caller sets its state.
func (q *Queue) stop(t *Task) {
	t.prev.next, t.next.prev = t.next, t.prev
	t.prev, t.next = nil, nil
	t.user.running--
	q.count--
}

// enqueue has a task wait, until the channel that it returns is closed. Each wait has a channel
// of its own: one goroutine that works for a request may wait again before another one has seen
// that it has waited. A level of which none has waited has its turn next: it saves no turns for
// later.
func (q *Queue) enqueue(t *Task) (granted <-chan struct{}) {
	t.state, t.granted = waiting, make(chan struct{})
	u, l := t.user, t.user.level
	if l.turns.Len() == 0 {
		l.due = max(l.due, q.turn)
	}
	u.waiters.push(t)
	if u.turn == nil {
		u.turn = l.turns.PushBack(u)
	}
	q.waiting++
	q.delayed++
	q.tickSoon()
	return t.granted
}

// grant has those run that may now. Levels have turns by their shares, and the users of a
// level one after the other.
func (q *Queue) grant() {
	for q.count < q.total {
		u := q.next()
		if u == nil {
			return
		}
		l := u.level
		q.turn = l.due
		l.due += 1 / float64(max(l.Shares, 1))
		t := u.waiters.pop()
		if u.waiters.Len() == 0 {
			l.turns.Remove(u.turn)
			u.turn = nil
		} else {
			l.turns.MoveToBack(u.turn)
		}
		q.waiting--
		q.run(t)
		close(t.granted)
	}
}

// next returns the user whose turn it is among those that may run one more task; nil if there
// is none. A level all of whose users compute as many as they may saves no turns either.
func (q *Queue) next() *user {
	var next *user
	due := math.Inf(1)
	for _, l := range q.levels {
		if l.turns.Len() == 0 {
			continue
		}
		switch u := q.nextOf(l); {
		case u == nil:
			l.due = max(l.due, q.turn)
		case l.due < due, l.due == due && l.Shares > next.level.Shares:
			next, due = u, l.due
		}
	}
	return next
}

// nextOf returns the first user of a level that may run one more task. Those before it, which
// are few since each computes all that it may, have their turn later.
func (q *Queue) nextOf(l *level) *user {
	for range l.turns.Len() {
		u := l.turns.Front().Value.(*user)
		if q.admits(u) {
			return u
		}
		l.turns.MoveToBack(u.turn)
	}
	return nil
}

// tickSoon has tick called while tasks wait.
func (q *Queue) tickSoon() {
	switch {
	case q.ticking:
		return
	case q.timer == nil:
		q.timer = time.AfterFunc(quantum, q.tick)
	default:
		q.timer.Reset(quantum)
	}
	q.ticking = true
}

// tick has tasks lapse that run since the tick before: what they wait for may never come.
// One that has computed all the time goes on, and waits for a turn after the next Unblock.
func (q *Queue) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for t := q.running.next; t != &q.running; {
		next := t.next
		if t.seen {
			q.stop(t)
			t.state = lapsed
		}
		t.seen = true
		t = next
	}
	q.grant()
	if q.ticking = q.waiting > 0; q.ticking {
		q.timer.Reset(quantum)
	}
}

// Collectors returns the metrics of the queue.
func (q *Queue) Collectors() []prometheus.Collector {
	read := func(value func() float64) func() float64 {
		return func() float64 {
			q.mu.Lock()
			defer q.mu.Unlock()
			return value()
		}
	}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "levelwire_runqueue_running", Help: "Handlers of requests that compute, without those of exempt requests.",
		}, read(func() float64 { return float64(q.count) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "levelwire_runqueue_waiting", Help: "Handlers of requests that wait because others of the same user, or of all users, compute.",
		}, read(func() float64 { return float64(q.waiting) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_runqueue_delayed_total", Help: "How often a handler had to wait because others of the same user, or of all users, computed.",
		}, read(func() float64 { return float64(q.delayed) })),
	}
}
