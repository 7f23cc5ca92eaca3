package reflector

import (
	"sync"
	"sync/atomic"
	"time"
)

// watchdog notices that a goroutine has waited for a stream for too long. Time
// spent on the store does not count, and an event costs two atomic adds: it is
// the watchdog that looks, four times in its limit, so it barks after one to
// one and a quarter limits.
type watchdog struct {
	beats atomic.Uint64 // odd while the goroutine waits

	mu       sync.Mutex
	timer    *time.Timer // nil: the limit is none, or stop was called
	period   time.Duration
	seen     uint64
	received int64
	quiet    int
	bytes    func() (received int64, arriving bool)
	tooLong  func()
}

const looks = 4

// newWatchdog starts a watchdog; a negative limit never barks. tooLong is called
// once at most, from a goroutine of its own. bytes says how much was received, and
// whether more of it is a sign that what the goroutine waits for is arriving.
func newWatchdog(limit time.Duration, bytes func() (received int64, arriving bool), tooLong func()) *watchdog {
	w := &watchdog{period: max(limit/looks, 1), bytes: bytes, tooLong: tooLong}
	if limit < 0 {
		return w
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.period, w.look)
	return w
}

func (w *watchdog) waiting() { w.beats.Add(1) }
func (w *watchdog) working() { w.beats.Add(1) }

// begin is waiting for a goroutine that waits since the watchdog was started.
func (w *watchdog) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.beats.Add(1)
}

// headway returns a number that is another one after each event, and whether the goroutine waits for an event of which
// nothing has come.
func (w *watchdog) headway() (beats uint64, silent bool) {
	beats = w.beats.Load()
	_, arriving := w.bytes()
	return beats, beats%2 == 1 && !arriving
}

// look runs at each period.
func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	now := w.beats.Load()
	received, arriving := w.bytes()
	arriving = arriving && received != w.received
	w.received = received
	if now%2 == 1 && now == w.seen && !arriving {
		w.quiet++
	} else {
		w.seen, w.quiet = now, 0
	}
	if w.quiet == looks {
		w.timer = nil
		w.tooLong()
		return
	}
	w.timer.Reset(w.period)
}

// stop ends the watchdog. A nil one is stopped.
func (w *watchdog) stop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}
