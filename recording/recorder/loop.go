package recorder

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/recording"
)

// message is what a follower tells the loop.
type message struct {
	from    *follower
	entries []recording.Entry
	// state is the state at the start, at revision. The loop sends on taken whether it
	// is in time.
	state []recording.Object
	taken chan bool
	// revision, without a state, is what the follower has reached.
	revision int64
	cut      bool   // the watch is not open
	leftOut  string // the follower has ended, and why
	// served is what the server serves now.
	served []recording.Resource
}

// tell sends a message to the loop. It waits if the file is slower than the server.
func (r *recorder) tell(ctx context.Context, m message) error {
	select {
	case r.inbox <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	releaseInterval = 200 * time.Millisecond
	// flushInterval is how much is lost at most if the process is killed.
	flushInterval    = 5 * time.Second
	progressInterval = time.Second
)

// loop writes the file. It is one goroutine.
type loop struct {
	recorder *recorder
	writer   *recording.Writer
	stats    Stats
	order    order
	// awaited are the followers that run; true until the state at the start has theirs.
	awaited map[*follower]bool
	begun   bool
	reached int64 // by any follower
	start   int64 // the greatest version of the lists at the start
	cut     int   // followers whose watch is not open
}

func newLoop(r *recorder, w *recording.Writer) *loop {
	return &loop{recorder: r, writer: w, awaited: map[*follower]bool{}, start: r.base,
		stats: Stats{Resources: len(r.resources), LeftOut: r.info.LeftOut}}
}

// run takes messages until ctx ends, and then writes what still waits.
func (l *loop) run(ctx context.Context) error {
	release, flush, progress := time.NewTicker(releaseInterval), time.NewTicker(flushInterval), time.NewTicker(progressInterval)
	defer release.Stop()
	defer flush.Stop()
	defer progress.Stop()
	deadline := time.NewTimer(l.recorder.opts.StartTimeout)
	defer deadline.Stop()
	for {
		var err error
		select {
		case m := <-l.recorder.inbox:
			err = l.take(ctx, m)
		case <-release.C:
			err = l.release(l.wait())
		case <-flush.C:
			err = l.flush()
		case <-progress.C:
			l.report()
		case <-deadline.C:
			for f, missing := range l.awaited {
				if missing {
					l.recorder.opts.Logger.Warn("the recording begins without a resource whose list has not come", "resource", f.name())
					l.awaited[f] = false
				}
			}
			err = l.begin()
		case <-ctx.Done():
			return l.end(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// take handles one message.
func (l *loop) take(ctx context.Context, m message) error {
	switch {
	case m.served != nil:
		if !l.begun || ctx.Err() != nil {
			return nil
		}
		return l.addNew(ctx, m.served)
	case m.leftOut != "":
		return l.leaveOut(m.from, m.leftOut)
	case m.taken != nil:
		return l.takeState(m)
	case m.cut:
		l.setCut(m.from, true)
		return nil
	}
	if m.entries == nil {
		l.setCut(m.from, false)
	}
	l.reached = max(l.reached, m.revision)
	for _, e := range m.entries {
		l.order.add(e)
	}
	if l.order.bytes > maxHeld {
		return l.release(l.wait())
	}
	return nil
}

func (l *loop) setCut(f *follower, cut bool) {
	if f.cut == cut {
		return
	}
	f.cut = cut
	if cut {
		l.cut++
	} else {
		l.cut--
	}
}

// takeState writes the state of a resource at the start.
func (l *loop) takeState(m message) error {
	m.taken <- l.awaited[m.from]
	if !l.awaited[m.from] {
		return nil
	}
	for i := range m.state {
		if err := l.writer.State(m.state[i]); err != nil {
			return err
		}
	}
	l.stats.Objects += len(m.state)
	l.start = max(l.start, m.revision)
	l.awaited[m.from] = false
	return l.begin()
}

// leaveOut notes a resource that cannot be recorded.
func (l *loop) leaveOut(f *follower, reason string) error {
	l.setCut(f, false)
	delete(l.awaited, f)
	l.stats.LeftOut = append(l.stats.LeftOut, recording.LeftOut{Resource: f.name(), Reason: reason})
	l.recorder.opts.Logger.Warn("a resource is not recorded", "resource", f.name(), "reason", reason)
	if !l.begun {
		return l.begin()
	}
	return l.writeInfo()
}

func (l *loop) writeInfo() error {
	l.recorder.info.LeftOut = l.stats.LeftOut
	return l.writer.SetInfo(l.recorder.info)
}

// begin ends the state at the start, if it has all resources.
func (l *loop) begin() error {
	if l.begun {
		return nil
	}
	for _, missing := range l.awaited {
		if missing {
			return nil
		}
	}
	l.begun, l.stats.Started = true, true
	if err := l.writer.EndState(l.start, time.Now()); err != nil {
		return err
	}
	close(l.recorder.started)
	if err := l.writeInfo(); err != nil {
		return err
	}
	l.report()
	return nil
}

// wait is how long changes wait for those of other resources.
func (l *loop) wait() time.Duration {
	if l.cut > 0 {
		return reconnectTime
	}
	return l.recorder.opts.SettleTime
}

// release writes the changes that have waited long enough.
func (l *loop) release(wait time.Duration) error {
	if !l.begun {
		return nil
	}
	return l.order.release(time.Now(), wait, l.write)
}

func (l *loop) write(e recording.Entry) error {
	switch {
	case e.Type == recording.Gap:
		l.stats.Gaps++
	case e.Type != recording.Progress:
		l.stats.Entries++
		if e.Revision < l.writer.Revision() {
			l.stats.Late++
		}
	}
	return l.writer.Event(e)
}

// flush writes how far the server has come, and makes sure that what was written is in
// the file.
func (l *loop) flush() error {
	if !l.begun {
		return nil
	}
	if l.reached > l.writer.Revision() && len(l.order.waiting) == 0 && l.cut == 0 {
		if err := l.write(recording.Entry{Type: recording.Progress, Time: time.Now(), Revision: l.reached}); err != nil {
			return err
		}
	}
	return l.writer.Flush()
}

func (l *loop) report() {
	l.stats.Resources, l.stats.Revision, l.stats.Bytes = len(l.recorder.resources), l.writer.Revision(), l.writer.Size()
	l.recorder.opts.Progress(l.stats)
}

// end writes everything that waits.
func (l *loop) end(ctx context.Context) error {
	for drained := false; !drained; {
		select {
		case m := <-l.recorder.inbox:
			if err := l.take(ctx, m); err != nil {
				return err
			}
		default:
			drained = true
		}
	}
	if !l.begun {
		return errors.New("the recording was ended before the state at its start was complete: it cannot be replayed")
	}
	err := l.release(0)
	if err == nil {
		err = l.flush()
	}
	l.report()
	return err
}
