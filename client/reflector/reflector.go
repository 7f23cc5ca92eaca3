package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/client"
)

// Reflector keeps one Store in step. Its exported methods are safe for
// concurrent use.
type Reflector[T client.Object] struct {
	source ListerWatcher[T]
	// streams is the source, whose watches are streams even if those of source are polls.
	streams ListerWatcher[T]
	store   Store[T]
	opts    Options

	started atomic.Bool
	version reachedVersion // what LastSyncResourceVersion returns
	counts  counts

	progress progress

	// What follows belongs to the goroutine of Run.

	backoff backoff
	// synced: the store holds the state of version, and a watch from there is
	// enough. Otherwise a list is due, because of cause.
	synced bool
	cause  ListCause
	// watched: the server has opened a watch since the last list, and it has ended.
	watched bool
	refused watchRefusals // of watches since then
	// hindered counts requests for a watch that have failed otherwise; see onlyLists.
	hindered watchRefusals
	// asked is when the list, or difference, was asked for that came last. It may have taken
	// long, and its state be of that moment.
	asked time.Time
	// fresh: ask the next list of pages for the most recent state, not merely
	// for one that is not older than version.
	fresh bool
	// streaming: no answer of the server showed that it has no streaming lists.
	streaming bool
	// missed and broken count streaming lists in a row that lacked their
	// closing bookmark, and that ended before it.
	missed, broken int
	// fellBack is why pages were asked for in place of the last one; "" after a list.
	fellBack string
	// followed is the version that the stream has reached. LastSyncResourceVersion may
	// be later, see RequestProgress.
	followed string
	// ends counts the streams, since the last list, that have ended without use.
	ends endings
	// unread is the version after which the server has something that could not be
	// read: a list of that version teaches nothing. "": none.
	unread string
	// unknown counts how often a server said of the version that it does not exist
	// yet, since the last event or list.
	unknown int
	absence absence
	outage  outage
	// unversioned: the server's lists have no resourceVersion, so that no watch can
	// resume. versionless counts such lists in a row before the first that is believed.
	unversioned bool
	versionless int
	// endsEmpty: the server has sent an empty last page where that is believed.
	endsEmpty bool
	// getter is nil if the store cannot say which state of an object it holds. Only with
	// one are deletions of use.
	getter    Getter[T]
	deletions deletions[T]
	// conditional is nil if nothing else writes to the store.
	conditional ConditionalWriter[T]
	// discoverer is nil if the source cannot ask for discovery.
	discoverer Discoverer
	differing  differing[T]
}

// New makes a reflector that has not started.
func New[T client.Object](source ListerWatcher[T], store Store[T], opts Options) (*Reflector[T], error) {
	if source == nil || store == nil {
		return nil, errors.New("a reflector needs a source and a store")
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	contained := containedSource[T]{source}
	r := &Reflector[T]{source: contained, streams: contained, store: store, opts: opts,
		cause: ListInitial, streaming: !opts.PagedList, counts: counts{begun: time.Now()}}
	r.backoff = backoff{Backoff: opts.Backoff, rand: r.random}
	if opts.PollTimeout > 0 {
		r.source = &poller[T]{ListerWatcher: contained, wait: opts.PollTimeout, grace: opts.OpenTimeout, count: r.counts.poll,
			quiet: func() { r.counts.contact(time.Now()) }}
	}
	r.version.move(opts.ResumeFrom)
	r.synced = opts.ResumeFrom != ""
	r.getter, _ = store.(Getter[T])
	r.conditional, _ = store.(ConditionalWriter[T])
	if dropper, can := store.(Dropper[T]); can {
		dropper.OnDrop(r.deletions.dropped)
	}
	r.discoverer, _ = source.(Discoverer)
	if !opts.NoDifferences {
		r.differing = newDiffering(source, store)
	}
	return r, nil
}

// NoteAbsent tells the Reflector that an object which the store has held does not exist, by a list of
// another kind than its own: it remembers that as it does what its lists lack, so that an
// older event does not bring the object back. version is that of the list, which the store has
// reached. It may be called at any time, also while Run runs, and before the store drops the object.
func (r *Reflector[T]) NoteAbsent(obj T, version string) { r.deletions.absent(obj, version) }

// Run lists and watches until ctx is done, and then returns nil. Errors of the
// server and of the network are recovered from; the only errors returned are the
// store's, and a *client.ScopeError of the source: what it asks for cannot exist. It may
// be called once.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if !r.started.CompareAndSwap(false, true) {
		return errors.New("the reflector has already been run: make a new one")
	}
	for ctx.Err() == nil {
		s, err := r.connect(ctx)
		if err == nil {
			r.present()
		}
		if s != nil {
			r.polls(false)
			s.from = r.LastSyncResourceVersion()
			err = r.follow(s)
			r.counts.watchEnded(errors.Is(err, io.EOF) && time.Since(s.opened) >= tooShort && !r.unversioned)
			s.close()
		}
		if fatal := fatal(err); fatal != nil {
			return fatal
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := r.recover(ctx, s, err); err != nil {
			return err
		}
	}
	return nil
}

// connect opens the stream to follow: after a list, or a difference, if one is
// due. A list of pages has no stream, and a difference has none; nil and no error
// means that the next call opens it.
func (r *Reflector[T]) connect(ctx context.Context) (*session[T], error) {
	if r.synced {
		return r.resume(ctx)
	}
	if done, err := r.difference(ctx); done || err != nil {
		return nil, err
	}
	if !r.absence.gone { // otherwise it is a probe, until it succeeds
		r.counts.list(r.cause)
	}
	r.fresh = r.listBegins() || r.fresh
	if !r.streaming || r.cause == ListUnwatched {
		return nil, r.listPages(ctx)
	}
	s, err := r.listStream(ctx)
	if err == nil || !r.fallBack(ctx, err) {
		return s, err
	}
	r.noteFallback(err)
	return nil, r.listPages(ctx)
}

// recover decides what follows a stream, or an attempt at one, that ended, and
// waits for as long as that demands. s is nil if it was not opened. The only
// error returned is the store's.
func (r *Reflector[T]) recover(ctx context.Context, s *session[T], err error) error {
	if err == nil {
		return nil // a list of pages, or a difference, is done
	}
	v := r.judge(s, err)
	if r.onlyLists(ctx, s, err, v) {
		v.relist, v.reason, v.anyState = ListUnwatched, "", true
	}
	switch {
	case !r.synced && r.differing.due: // it is asked for again, and nothing was listed
	case !r.synced: // a list failed
		r.cause = ListRepeated
		r.fresh = r.fresh || v.relist != ""
		if v.relist == "" {
			r.differing.listFailed()
		}
	case v.relist != "":
		r.relist(v)
	case r.unversioned, unset(r.LastSyncResourceVersion()): // nothing else shows deletions that were missed
		r.relist(verdict{relist: ListUnversioned})
	default:
		r.counts.resume(v.reason)
	}
	if v.quietly || v.early {
		r.opts.Logger.Debug("opening the watch again", "reason", v.reason, "resourceVersion", r.LastSyncResourceVersion())
		if v.early {
			sleep(ctx, r.backoff.spread())
		}
		return nil
	}
	wasGone := r.absence.gone
	if err := r.absent(ctx, err); err != nil {
		return err
	}
	if r.outage.failed(time.Now(), err, v) {
		// While there was no server the limit has grown. Now there is one, and the store is of
		// no use until it is listed. The clients have found that out at random moments.
		r.backoff.restart()
	}
	// The random part comes on top of Retry-After, or all clients that a server has
	// refused would come back at once.
	delay := r.retryAfter(v) + r.delay(v)
	r.report(err, v, delay, wasGone)
	sleep(ctx, delay)
	return nil
}

// relist notes that a list is due. Any state that is not older than the version may do,
// unless such a list has not helped before.
func (r *Reflector[T]) relist(v verdict) {
	version := r.LastSyncResourceVersion()
	r.synced, r.cause = false, v.relist
	r.polls(v.relist == ListUnwatched)
	r.fresh = !v.anyState || v.unread && r.unread == version || r.unversioned
	if v.unread {
		r.unread = version
	}
	r.differing.expect(v.relist)
}

// retryAfter is what of the server's Retry-After is waited for. A page of a proxy that
// names a day, or a server that names a century, must not stop the reflector.
func (r *Reflector[T]) retryAfter(v verdict) time.Duration {
	return min(max(v.after, 0), r.opts.Backoff.Max)
}

// delay is how long to wait after a failure, beside Retry-After.
func (r *Reflector[T]) delay(v verdict) time.Duration {
	if v.cutAfter > 0 {
		return r.backoff.afterCut(time.Now(), v.cutAfter)
	}
	return r.backoff.next(time.Now())
}

// random returns a random number in [0,1), also if the program's function panics.
func (r *Reflector[T]) random() (n float64) {
	n = rand.Float64()
	r.counts.panics.Call(r.opts.Logger, "Rand", func() { n = r.opts.Rand() })
	return n
}

// report logs an error that the reflector recovers from, and calls OnError.
func (r *Reflector[T]) report(err error, v verdict, delay time.Duration, wasGone bool) {
	r.counts.failed(err)
	level := r.logLevel(err, v, wasGone)
	r.absence.noted = ""
	if r.notServed(err) {
		r.absence.noted = err.Error()
	}
	r.opts.Logger.Log(context.Background(), level, "list or watch failed", "error", err, "reason", v.reason, "relist", v.relist,
		"resourceVersion", r.LastSyncResourceVersion(), "retryAfter", v.after, "delay", delay,
		"failingFor", time.Since(r.outage.since).Round(time.Second))
	if r.opts.OnError == nil {
		return
	}
	r.counts.panics.Call(r.opts.Logger, "OnError", func() { r.opts.OnError(r.opts.Name, err) })
}

// logLevel is Info for an error that passes by itself. It is Warn for one that
// an operator may have to look at: a list failed or another has to follow, the
// server denies access, asks for more time than it gets, or its answer cannot be
// decoded; and, now and then, for an outage that lasts. It is lower for a
// resource that is already known to be gone, and for the same 404 once more.
func (r *Reflector[T]) logLevel(err error, v verdict, wasGone bool) slog.Level {
	switch {
	case r.notServed(err) && (wasGone || r.absence.noted == err.Error()):
		return slog.LevelDebug
	case !r.synced, v.after > r.opts.Backoff.Max, v.reason == ResumeDenied, v.reason == ResumeNotServed, v.reason == ResumeDecode:
		return slog.LevelWarn
	case r.outage.warns(time.Now()):
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// LastSyncResourceVersion is the resourceVersion that the store has surely
// reached; "" before the first list. It moves backwards only if the server's
// own versions do, as after the restore of a backup, and a list of its most
// recent state shows that, and it is "" while the resource is gone (see
// Options.GoneAfter).
func (r *Reflector[T]) LastSyncResourceVersion() string { return r.version.get() }

// Stats returns what the reflector did so far.
func (r *Reflector[T]) Stats() Stats { return r.counts.stats() }

// replace gives the store a complete list.
func (r *Reflector[T]) replace(items []T, version string) error {
	r.learned(version)
	if err := r.store.Replace(items, version); err != nil {
		return &storeError{fmt.Errorf("store: replace with %d objects of resourceVersion %q: %w", len(items), version, err)}
	}
	r.opts.Logger.Debug("listed", "cause", r.cause, "objects", len(items), "resourceVersion", version)
	r.complete(version)
	return nil
}

// learned notes that a list, or a difference, has come, before the store has it: a
// reader of both sees the cause first.
func (r *Reflector[T]) learned(version string) {
	r.deletions.listed(version, r.LastSyncResourceVersion())
	if version != r.unread || version == "" {
		r.unread = ""
		r.counts.contact(r.asked)
	}
}

// complete notes that the store holds the state of a version.
func (r *Reflector[T]) complete(version string) {
	r.synced, r.watched, r.fresh, r.ends, r.unknown, r.differing.due = true, false, false, endings{}, 0, false
	r.followed, r.unversioned, r.versionless = version, version == "", 0
	r.fellBack = ""
	if r.getter != nil {
		r.deletions.settle(r.getter)
	}
	r.relisted(version)
}

// believeUnversioned reports whether a list without a resourceVersion is one: some
// aggregated servers have none. A server that had them before has, and one that forgets
// it once must not begin with an empty cache. Where it is one, each watch begins with
// the state of the moment, and a list follows it: nothing else shows deletions that
// were missed.
func (r *Reflector[T]) believeUnversioned() bool {
	if !unset(r.LastSyncResourceVersion()) {
		return false
	}
	if r.versionless++; !r.unversioned && r.versionless < 2 {
		return false
	}
	if !r.unversioned {
		r.opts.Logger.Warn("the server's lists have no resourceVersion: no watch can resume, and a list follows each of them")
	}
	return true
}

// fatal returns what Run returns for an error that ends it; nil for all others.
func fatal(err error) error {
	var store *storeError
	var scope *client.ScopeError
	switch {
	case errors.As(err, &store):
		return store.err
	case errors.As(err, &scope):
		return scope
	default:
		return nil
	}
}

// storeError ends Run.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }

// sleep waits for d or for ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
