package runqueue

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// backlog has each of so many users of a level wait with so many tasks.
func (q *Queue) backlog(level Level, users, tasks int, began chan<- *Task) {
	for user := range users {
		for range tasks {
			q.beginAt(level, fmt.Sprint(level.Name, "-", user), began)
		}
	}
	synctest.Wait()
}

// end ends the task that began first of those that run, so that another one begins, and returns
// the level of the one that has ended.
func end(began <-chan *Task) string {
	task := <-began
	level := task.user.level.Name
	task.End()
	synctest.Wait()
	return level
}

// turns is end, several times. It returns how many tasks of each level have ended.
func turns(n int, began <-chan *Task) map[string]int {
	ended := map[string]int{}
	for range n {
		ended[end(began)]++
	}
	return ended
}

// TestLevelsHaveTurnsByTheirShares, at any time.
func TestLevelsHaveTurnsByTheirShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		began := make(chan *Task, 400)
		q.backlog(Level{"a", 30}, 5, 40, began)
		q.backlog(Level{"b", 10}, 5, 40, began)
		turns(usersAtOnce, began) // these did not wait
		seen := map[string]int{}
		for range 100 {
			seen[end(began)]++
			if ahead := seen["a"] - 3*seen["b"]; ahead < -3 || ahead > 4 {
				t.Fatalf("turns of levels with 30 and 10 shares: %v", seen)
			}
		}
		if rest := turns(400-usersAtOnce-100, began); seen["a"]+rest["a"]+usersAtOnce != 200 || seen["b"]+rest["b"] != 200 {
			t.Errorf("%v, then %v", seen, rest)
		}
		q.wantIdle(t)
	})
}

// TestAnUrgentTaskIsNext although very many wait at another level, each time that it comes after
// a while.
func TestAnUrgentTaskIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		began := make(chan *Task, 300)
		q.backlog(Level{"catch-all", 5}, 100, 3, began)
		for round := range 5 {
			urgent := make(chan *Task, 1)
			task := q.beginAt(Level{"leader-election", 10}, "elector", urgent)
			synctest.Wait()
			if task.state != waiting {
				t.Fatal("more compute than may at a time")
			}
			end(began)
			if len(urgent) != 1 {
				t.Fatalf("round %d: an urgent task waits for more than one of %d others", round, q.waiting)
			}
			task.End()
			synctest.Wait()
			turns(10, began)
		}
		turns(300-5*11, began)
		q.wantIdle(t)
	})
}

// TestEachLevelHasTurns, also one without shares.
func TestEachLevelHasTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		began := make(chan *Task, 100)
		q.backlog(Level{"rich", 20}, 5, 15, began)
		q.backlog(Level{"none", 0}, 5, 5, began)
		if n := turns(usersAtOnce+21+1, began)["none"]; n == 0 {
			t.Error("a level without shares has no turn among 21")
		}
		turns(100-usersAtOnce-22, began)
		q.wantIdle(t)
	})
}

// TestLevelsSaveNoTurns while their users compute as many as they may.
func TestLevelsSaveNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		busy, others := make(chan *Task, 100), make(chan *Task, 100)
		q.backlog(Level{"a", 2}, 1, 2, busy) // one runs all the time, and one waits for it
		q.backlog(Level{"b", 1}, 5, 16, others)
		turns(30, others)
		for user := range 5 {
			for range 8 {
				q.beginAt(Level{"a", 2}, fmt.Sprint("late-", user), others)
			}
		}
		synctest.Wait()
		if got := turns(33, others); got["b"] < 9 {
			t.Errorf("after a while in which it could not use its turns, a level has all of them: %v", got)
		}
		turns(5*16+5*8-30-33, others)
		turns(2, busy)
		q.wantIdle(t)
	})
}

// TestAUserCountsInEachLevel: what is more urgent does not wait for what is less.
func TestAUserCountsInEachLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(2)
		began := make(chan *Task, 100)
		for range 100 {
			q.beginAt(Level{"workload-high", 40}, "controller-manager", began)
		}
		synctest.Wait()
		urgent := q.beginAt(Level{"leader-election", 10}, "controller-manager", make(chan *Task, 1))
		synctest.Wait()
		if urgent.state != running || q.waiting != 98 {
			t.Errorf("a task waits for those of its user at another level; %d wait", q.waiting)
		}
		urgent.End()
		turns(100, began)
		q.wantIdle(t)
	})
}

// TestLevelsAreForgotten once there are many, but for those with tasks.
func TestLevelsAreForgotten(t *testing.T) {
	q := newQueue(1)
	var stays Task
	stays.Start(q, Level{"stays", 1}, "a")
	for i := range 3 * maxLevels {
		var task Task
		task.Start(q, Level{fmt.Sprint(i), i}, "a")
		task.End()
	}
	if n := len(q.levels); n > maxLevels || q.levels[0].Name != "stays" {
		t.Errorf("%d levels are remembered, the first is %q", n, q.levels[0].Name)
	}
	stays.End()
	q.wantIdle(t)
}
