package processors

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// expect checks GOMAXPROCS.
func expect(t *testing.T, when string, want int) {
	t.Helper()
	if got := runtime.GOMAXPROCS(0); got != want {
		t.Errorf("%s: GOMAXPROCS is %d, want %d", when, got, want)
	}
}

func TestProcessorsWhileWorkComputes(t *testing.T) {
	t.Cleanup(runtime.SetDefaultGOMAXPROCS)
	runtime.SetDefaultGOMAXPROCS()
	usual := runtime.GOMAXPROCS(0)
	synctest.Test(t, func(t *testing.T) {
		state.lower = nil // of this bubble's clock
		Computing()()
		expect(t, "nothing was asked for", usual)
		stop := Spare(usual + 2)
		expect(t, "nothing computes", usual)
		first, second := Computing(), Computing()
		expect(t, "two compute", usual+2)
		first()
		time.Sleep(2 * lowerAfter)
		expect(t, "one computes", usual+2)
		second()
		time.Sleep(lowerAfter / 2)
		expect(t, "nothing has computed for a moment", usual+2)
		third := Computing()
		time.Sleep(lowerAfter)
		expect(t, "something computes again", usual+2)
		third()
		time.Sleep(lowerAfter)
		synctest.Wait()
		expect(t, "nothing has computed for a while", usual)
		Computing()
		stop()
		expect(t, "after the end", usual)
		state.computing, state.lower = 0, nil
	})
	runtime.GOMAXPROCS(usual + 3)
	defer Spare(usual + 2)()
	defer Computing()()
	expect(t, "there are more", usual+3)
}
