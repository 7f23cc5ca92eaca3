package reflector

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"
)

// Options configures a Reflector. The zero value of every member is its
// documented default.
type Options struct {
	// Name stands in logs. Default: none.
	Name string
	// Logger receives lists, resumes and errors. Default: slog.Default().
	Logger *slog.Logger

	// Filtered says that the source shows what its user may see ([client.Resource.Visible]):
	// an object that becomes visible is ADDED with the resourceVersion that it has, which may
	// be older than what the store has reached. Otherwise such events are dropped.
	Filtered bool

	// ResumeFrom is the resourceVersion that the store already holds, as one
	// restored from disk does: the reflector starts with a watch from it and
	// lists only if the server no longer has it and supports no differences.
	// Default "": list first.
	ResumeFrom string

	// NoDifferences lists when no watch can resume from the resourceVersion any
	// more. Otherwise the reflector first sends the server what the store holds
	// and asks for what differs, if both the source and the store support it: see
	// Differ and Holder. A Client asks for a difference that a server refuses, or does not
	// know, once in ten minutes.
	NoDifferences bool

	// PagedList asks for pages at once and never for a streaming list.
	PagedList bool
	// PageSize is the limit of one page. Default 500; negative: one page.
	PageSize int64
	// MaxObjects is how many objects one list may have, so that a server that has always
	// another page, or initial event, does not fill the memory, and is seen: a list of more
	// fails as one that cannot be read does, with an error that says so, and is repeated. A page
	// counts as a tenth of PageSize at least. Default 20 million; negative: no bound.
	MaxObjects int
	// InitialEventsTimeout is how long a streaming list may make no progress
	// before pages are asked for instead. It is shorter for a server that answers a list
	// meanwhile: after 5 seconds it is asked for one of one object, and has some seconds more
	// after the answer. Default 30 s; negative: for ever, which a server that never sends
	// the closing bookmark makes true.
	InitialEventsTimeout time.Duration

	// WatchTimeout is how long the server is asked to keep a watch open: each
	// time a random value in [1,2) times it. Default 5 minutes; at most 30 seconds where
	// lists have no resourceVersion, so that one has to follow each watch.
	WatchTimeout time.Duration
	// SilenceTimeout is how long an open watch may say nothing, not even a
	// bookmark, before it is replaced by another from the same resourceVersion.
	// Servers send bookmarks about once a minute. An event that arrives slowly, as a large
	// one does over a slow link, is waited for while bytes of it come, for as long as the
	// watch was to last and SilenceTimeout. Default 3 minutes; negative: for ever.
	SilenceTimeout time.Duration

	// PollTimeout, if not zero, reads changes by long polling in place of
	// streams: each request is a watch that the server is asked to end after
	// this time, in whole seconds, and its answer is used when it is complete.
	// It works through proxies that hold an answer back until its end, at the
	// price of a delay of up to this time. Lists are then pages, and
	// WatchTimeout and SilenceTimeout cannot be set: OpenTimeout bounds how long an answer may
	// be overdue. Default 0: streams.
	PollTimeout time.Duration

	// OpenTimeout is how long a watch may take to begin to answer. Default 30 s;
	// negative: for ever.
	OpenTimeout time.Duration
	// ListTimeout is for how long nothing may come of the answer to a request for a page, or
	// for a difference. While bytes come, the whole of it may take five times as long.
	// Default 2 minutes; negative: no bound.
	ListTimeout time.Duration

	// GoneAfter is how long the server must say, to each request, and without another
	// failure in between, that it has no such resource (404) until that is believed: when
	// the CustomResourceDefinition was deleted, for instance. Its discovery must
	// confirm it (see Discoverer): a 404 may be a proxy's. Then the store is
	// emptied, and asking goes on quietly, spaced as by Backoff, until the
	// resource is back and is listed anew. Default 1 minute, which outlasts a
	// server that starts; negative: never, and the store keeps what it held.
	GoneAfter time.Duration

	// Backoff spaces attempts that fail.
	Backoff Backoff
	// Rand returns a random number in [0,1); it is called from one goroutine. If it panics, that is
	// logged, and the number is the default's.
	// Default: math/rand/v2.
	Rand func() float64

	// OnError is called with each error that the reflector recovers from, before
	// it waits: watches that were cut or silent for too long are among them, and
	// those that the server ended before their time and within half a minute;
	// others that ended cleanly are not. name is Options.Name, which in an informer
	// is the informer's. It must return quickly; a panic is logged. Default: none.
	OnError func(name string, err error)
	// OnProgress is called with each new resourceVersion that the store has
	// surely reached: after lists, events and bookmarks, by one goroutine at a time.
	// It must return quickly; a panic is logged.
	// Default: none.
	OnProgress func(resourceVersion string)
}

// DefaultMaxObjects is the default of Options.MaxObjects.
const DefaultMaxObjects = 20_000_000

// Backoff says how long to wait after failures: a random part ("full jitter")
// of a limit that starts at Base and doubles. After a watch that had lasted for a
// second or longer was cut, or ended by its server before its time, the limit
// starts at a quarter of Base, and doubles only with watches of less than half a
// minute. A server's Retry-After is waited for before that, up to Max. A watch that has ended in due time is opened again at once. Where the
// server answers lists but no watch ([ListUnwatched]), Backoff spaces
// lists.
type Backoff struct {
	Base  time.Duration // default 800 ms
	Max   time.Duration // default 30 s
	Reset time.Duration // the limit is Base again after so long without failures; default 2 min
}

func (o Options) withDefaults() Options {
	setDefault(&o.PageSize, 500)
	setDefault(&o.MaxObjects, DefaultMaxObjects)
	if o.MaxObjects < 0 {
		o.MaxObjects = math.MaxInt
	}
	setDefault(&o.InitialEventsTimeout, 30*time.Second)
	setDefault(&o.WatchTimeout, 5*time.Minute)
	setDefault(&o.SilenceTimeout, 3*time.Minute)
	setDefault(&o.OpenTimeout, 30*time.Second)
	if o.PollTimeout > 0 {
		o.PagedList, o.SilenceTimeout = true, -1
	}
	setDefault(&o.ListTimeout, 2*time.Minute)
	setDefault(&o.GoneAfter, time.Minute)
	setDefault(&o.Backoff.Base, 800*time.Millisecond)
	setDefault(&o.Backoff.Max, 30*time.Second)
	setDefault(&o.Backoff.Reset, 2*time.Minute)
	for _, d := range []*time.Duration{&o.OpenTimeout, &o.ListTimeout} {
		if *d < 0 {
			*d = forEver
		}
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Name != "" {
		o.Logger = o.Logger.With("reflector", o.Name)
	}
	return o
}

// forEver is far beyond any process's life, and can be added to a time.
const forEver = 100 * 365 * 24 * time.Hour

func setDefault[V comparable](v *V, value V) {
	var zero V
	if *v == zero {
		*v = value
	}
}

// Validate returns an error that names the first option which cannot be used.
func (o Options) Validate() error {
	if o.WatchTimeout != 0 && o.WatchTimeout < time.Second {
		return fmt.Errorf("Options.WatchTimeout %v is below a second, which is the least that servers can be asked for; leave it 0 for the default", o.WatchTimeout)
	}
	if o.PollTimeout != 0 && o.PollTimeout < time.Second {
		return fmt.Errorf("Options.PollTimeout %v is not at least a second, which is the least that servers can be asked for", o.PollTimeout)
	}
	if o.ResumeFrom == "0" {
		return errors.New("Options.ResumeFrom \"0\" names no state that the store can hold: leave it empty to list first")
	}
	for _, option := range []struct {
		name  string
		value time.Duration
	}{
		{"InitialEventsTimeout", o.InitialEventsTimeout}, {"SilenceTimeout", o.SilenceTimeout}, {"OpenTimeout", o.OpenTimeout},
		{"ListTimeout", o.ListTimeout}, {"GoneAfter", o.GoneAfter},
		{"Backoff.Base", o.Backoff.Base}, {"Backoff.Max", o.Backoff.Max}, {"Backoff.Reset", o.Backoff.Reset},
	} {
		if option.value > 0 && option.value < time.Millisecond {
			return fmt.Errorf("%s %v is below a millisecond: is it a number without a unit?", "Options."+option.name, option.value)
		}
	}
	for _, option := range []struct {
		name    string
		set     bool
		without string
	}{
		{"InitialEventsTimeout", o.InitialEventsTimeout != 0 && (o.PagedList || o.PollTimeout != 0), "streaming lists, which PagedList and PollTimeout switch off"},
		{"SilenceTimeout", o.SilenceTimeout > 0 && o.PollTimeout != 0, "streams, which PollTimeout replaces: OpenTimeout bounds how long an answer may be overdue"},
		{"WatchTimeout", o.WatchTimeout != 0 && o.PollTimeout != 0, "streams, which PollTimeout replaces"},
	} {
		if option.set {
			return fmt.Errorf("%s is of use only with %s", "Options."+option.name, option.without)
		}
	}
	if o.Backoff.Base > 0 && o.Backoff.Max > 0 && o.Backoff.Max < o.Backoff.Base {
		return fmt.Errorf("Options.Backoff.Max %v is below Options.Backoff.Base %v", o.Backoff.Max, o.Backoff.Base)
	}
	if o.Backoff.Base < 0 || o.Backoff.Max < 0 || o.Backoff.Reset < 0 {
		return fmt.Errorf("Options.Backoff %+v has negative times: leave them 0 for the defaults", o.Backoff)
	}
	return nil
}
