package runqueue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/levelwire/levelwire/internal/testseed"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin has a handler of a user start, and reports to order when it may compute.
func (q *Queue) begin(user string, order chan<- *Task) *Task { return q.beginAt(Level{}, user, order) }

func (q *Queue) beginAt(level Level, user string, order chan<- *Task) *Task {
	t := &Task{}
	go func() {
		t.Start(q, level, user)
		order <- t
	}()
	return t
}

// wantIdle checks that nothing is left of the tasks.
func (q *Queue) wantIdle(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count != 0 || q.waiting != 0 || q.running.next != &q.running {
		t.Errorf("%d tasks run and %d wait", q.count, q.waiting)
	}
	for _, l := range q.levels {
		if l.turns.Len() != 0 {
			t.Errorf("%d users of level %q wait", l.turns.Len(), l.Name)
		}
		for _, u := range l.users {
			if u.tasks != 0 || u.running != 0 || u.waiters.Len() != 0 {
				t.Errorf("left of user %s at level %q: %+v", u.name, l.Name, u)
			}
		}
	}
}

// TestUsersTakeTurns: of a user with very many handlers, as many compute as there are
// processors; another user's need not wait for the rest of them.
func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(2)
		began := make(chan *Task, 200)
		for range 100 {
			q.begin("greedy", began)
		}
		synctest.Wait()
		if n := len(began); n != 2 {
			t.Fatalf("%d handlers of one user compute on 2 processors", n)
		}
		other := q.begin("other", make(chan *Task, 1))
		synctest.Wait()
		if q.waiting != 98 || other.state != running {
			t.Errorf("another user's handler waits: %d wait", q.waiting)
		}
		other.End()
		for range 100 {
			task := <-began
			task.End()
			synctest.Wait()
			if q.count > 2 {
				t.Fatalf("%d compute", q.count)
			}
		}
		q.wantIdle(t)
	})
}

// TestManyUsers: all together do not compute on more than their part, and none waits for
// another's second turn.
func TestManyUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		began := make(chan *Task, 100)
		for round := range 3 {
			for user := range 6 {
				q.begin(fmt.Sprint("user-", user), began)
				_ = round
				synctest.Wait()
			}
		}
		seen := map[string]int{}
		for range 18 {
			if n := q.count; n > usersAtOnce {
				t.Fatalf("%d compute", n)
			}
			task := <-began
			seen[task.user.name]++
			for name, n := range seen {
				for user := range 6 {
					if other := seen[fmt.Sprint("user-", user)]; n > other+1 {
						t.Fatalf("%s had %d turns, user-%d %d", name, n, user, other)
					}
				}
			}
			task.End()
			synctest.Wait()
		}
		q.wantIdle(t)
	})
}

// TestBlockedTasksDoNotCount, and wait for a turn when what they waited for has come.
func TestBlockedTasksDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		began := make(chan *Task, 3)
		first := q.begin("a", began)
		synctest.Wait()
		second := q.begin("a", began)
		synctest.Wait()
		if second.state != waiting {
			t.Fatal("two compute on one processor")
		}
		first.Block()
		first.Block()
		synctest.Wait()
		if second.state != running {
			t.Fatal("a handler waits for one that does not compute")
		}
		unblocked := make(chan struct{})
		go func() {
			first.Unblock()
			first.Unblock()
			close(unblocked)
		}()
		synctest.Wait()
		if first.state != waiting {
			t.Fatal("two compute on one processor")
		}
		second.End()
		<-unblocked
		first.End()
		first.End()
		first.Block() // exempt now
		first.Unblock()
		q.wantIdle(t)
	})
}

// TestTasksLapse: one that waits for something without saying so holds up others for two
// quanta at most, and nothing is asked of the time while none waits.
func TestTasksLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		var hangs, next Task
		hangs.Start(q, Level{}, "a")
		time.Sleep(time.Hour)
		begun := time.Now()
		next.Start(q, Level{}, "a")
		if waited := time.Since(begun); waited > 2*quantum {
			t.Errorf("waited %v", waited)
		}
		if hangs.state != lapsed {
			t.Errorf("state %d", hangs.state)
		}
		hangs.Block()
		next.End()
		hangs.Unblock()
		if hangs.state != running {
			t.Errorf("state %d", hangs.state)
		}
		hangs.End()
		time.Sleep(2 * quantum)
		if q.ticking {
			t.Error("the timer runs although none waits")
		}
		q.wantIdle(t)
	})
}

// TestTheLastGoroutineEndsATask: End while another goroutine of the request waits.
func TestTheLastGoroutineEndsATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		var first, second Task
		first.Start(q, Level{}, "a")
		first.Block()
		second.Start(q, Level{}, "a")
		go first.Unblock()
		synctest.Wait()
		first.End()
		second.End()
		synctest.Wait()
		q.wantIdle(t)
	})
}

// TestGoroutinesOfATaskWaitOneAfterTheOther: one waits for the next turn before another one has
// seen that it had the last, and the task ends meanwhile.
func TestGoroutinesOfATaskWaitOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		var shared, other Task
		shared.Start(q, Level{}, "a")
		shared.Block()
		other.Start(q, Level{}, "a")
		q.mu.Lock()
		granted := q.enqueue(&shared) // the first part of an Unblock
		q.mu.Unlock()
		other.Block() // the shared task has its turn
		shared.Block()
		other.Unblock()
		second := make(chan struct{})
		go func() {
			shared.Unblock()
			close(second)
		}()
		synctest.Wait()
		select {
		case <-second:
			t.Error("two tasks of a user compute on one processor")
		default:
		}
		shared.End()
		q.await(&shared, granted)
		if shared.state != waiting || q.waiting != 1 {
			t.Errorf("a task for which a goroutine waits is in state %d, %d wait", shared.state, q.waiting)
		}
		other.End()
		<-second
		q.wantIdle(t)
	})
}

// TestGoroutinesShareATask at once, beside others that wait.
func TestGoroutinesShareATask(t *testing.T) {
	q := newQueue(1)
	var tasks [3]Task
	var requests sync.WaitGroup
	for i := range tasks {
		requests.Go(func() {
			for range 200 {
				tasks[i].Start(q, Level{}, "a")
				var group sync.WaitGroup
				for range 2 {
					group.Go(func() {
						for range 5 {
							tasks[i].Block()
							tasks[i].Unblock()
						}
					})
				}
				tasks[i].End()
				group.Wait()
			}
		})
	}
	requests.Wait()
	q.wantIdle(t)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
	}
}

func TestExemptTasks(t *testing.T) {
	for _, task := range []*Task{nil, {}, FromContext(t.Context())} {
		task.Block()
		task.Unblock()
		task.End()
	}
	task := &Task{}
	if got := FromContext(context.WithValue(t.Context(), Key, task)); got != task {
		t.Errorf("got %p, want %p", got, task)
	}
}

// TestManyAtOnce: what has run has ended, and never do more compute than may.
func TestManyAtOnce(t *testing.T) {
	q := newQueue(2)
	seed := testseed.New(t)
	var group sync.WaitGroup
	for i := range 50 {
		random := seed.Rand(i)
		group.Go(func() {
			for range 200 {
				var task Task
				task.Start(q, Level{fmt.Sprint(i % 3), i % 3}, fmt.Sprint(i%7))
				for range random.IntN(3) {
					task.Block()
					task.Unblock()
				}
				q.mu.Lock()
				if q.count > q.total || task.user.running > q.perUser {
					t.Errorf("%d compute, of this user %d", q.count, task.user.running)
				}
				q.mu.Unlock()
				task.End()
			}
		})
	}
	group.Wait()
	q.wantIdle(t)
	q.mu.Lock()
	timer := q.timer
	q.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
}

// TestUsersAreForgotten once there are many.
func TestUsersAreForgotten(t *testing.T) {
	q := newQueue(1)
	for i := range 3 * maxIdle {
		var task Task
		task.Start(q, Level{}, fmt.Sprint(i))
		task.End()
	}
	if n := len(q.levels[0].users); n > maxIdle {
		t.Errorf("%d users are remembered", n)
	}
	q.wantIdle(t)
}

func TestNothingIsAllocated(t *testing.T) {
	q := newQueue(1)
	var task Task
	if n := testing.AllocsPerRun(100, func() {
		task = Task{}
		task.Start(q, Level{}, "a")
		task.Block()
		task.Unblock()
		task.End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTask(b *testing.B) {
	q := newQueue(1)
	var task Task
	b.ReportAllocs()
	for b.Loop() {
		task = Task{}
		task.Start(q, Level{}, "a")
		task.Block()
		task.Unblock()
		task.End()
	}
}

// TestTasksThatYieldKeepCounting although they compute for long; one that counts no more waits
// for its turn when it yields.
func TestTasksThatYieldKeepCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		long := &Task{}
		long.Start(q, Level{}, "user")
		next := make(chan *Task, 1)
		q.begin("user", next)
		for range 5 {
			time.Sleep(quantum - time.Microsecond)
			long.Yield()
		}
		if len(next) != 0 {
			t.Error("a task that yields counts no more")
		}
		time.Sleep(2 * quantum)
		synctest.Wait()
		if len(next) != 1 {
			t.Fatal("a task that computes for long without yielding keeps others waiting")
		}
		yielded := make(chan struct{})
		go func() {
			long.Yield()
			close(yielded)
		}()
		synctest.Wait()
		select {
		case <-yielded:
			t.Error("two tasks of a user compute on one processor")
		default:
		}
		(<-next).End()
		<-yielded
		long.End()
		q.wantIdle(t)
	})
	var none *Task
	none.Yield()
	new(Task).Yield()
}
