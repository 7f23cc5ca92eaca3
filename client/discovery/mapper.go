package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
)

// Options configures a Mapper. The zero value of every member is its default.
type Options struct {
	// MaxAge is for how long an answer of the server is used without asking again.
	// Default 10 minutes. A server that has not changed answers 304, without a body.
	MaxAge time.Duration
	// MinInterval is the time between two questions, on average: names that do not
	// exist are asked for at most that often, by all callers together. Default 1 s,
	// and up to five at once after a quiet time.
	MinInterval time.Duration
	// Logger receives what Run reports about its watch. Default: slog.Default().
	Logger *slog.Logger
}

const (
	defaultMaxAge      = 10 * time.Minute
	defaultMinInterval = time.Second
	burst              = 5
)

// Mapper maps kinds and names to the resources of a server. It asks the server at the
// first use, again when the answer has become old or has been invalidated, and when it
// does not find what it is asked for: a CustomResourceDefinition may have come. [Mapper.Run]
// keeps it up to date. All methods may be called concurrently.
type Mapper struct {
	client  *client.Client
	opts    Options
	limiter *rate.Limiter
	turn    chan struct{} // held while the server is asked

	mu    sync.Mutex
	state *state // nil: nothing is known; what it points to is constant
	stale bool   // ask again before the next answer
	// changing is until when the server's documents may lag behind what is known to
	// have changed: an event of a definition comes before discovery shows it.
	changing time.Time
}

// settlePeriod is for how long after an invalidation the server is asked again, once
// every Options.MinInterval.
const settlePeriod = 10 * time.Second

// state is a document with the time at which it was asked for.
type state struct {
	document document
	asOf     time.Time
}

// NewMapper returns a Mapper. It sends no request yet.
func NewMapper(c *client.Client, opts Options) *Mapper {
	if opts.MaxAge <= 0 {
		opts.MaxAge = defaultMaxAge
	}
	if opts.MinInterval <= 0 {
		opts.MinInterval = defaultMinInterval
	}
	return &Mapper{client: c, opts: opts, turn: make(chan struct{}, 1),
		limiter: rate.NewLimiter(rate.Every(opts.MinInterval), burst)}
}

// Client returns the client that the Mapper asks with.
func (m *Mapper) Client() *client.Client { return m.client }

// Invalidate makes the Mapper ask the server again before the next answer, within the
// bounds of Options.MinInterval.
func (m *Mapper) Invalidate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stale, m.changing = true, time.Now().Add(settlePeriod)
}

// ByKind returns the resource of a kind: in the first of the versions that the server
// serves, or in the one that the server prefers if none is given. meta.IsNoMatchError
// says of an error that the server does not serve the kind; it is false if the kind's
// group cannot be asked.
func (m *Mapper) ByKind(ctx context.Context, kind schema.GroupKind, versions ...string) (Resource, error) {
	return m.find(ctx, func(all []Resource) (Resource, bool) { return byKind(all, kind, versions) },
		func(gv schema.GroupVersion) bool {
			return len(versions) == 0 && mayHave(gv, kind.Group, "") ||
				slices.ContainsFunc(versions, func(version string) bool { return mayHave(gv, kind.Group, version) })
		},
		func([]Resource) error { return &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions} })
}

// ByResource returns a resource by its plural name. The version may be empty: the
// server's preferred one. meta.IsNoMatchError says of an error that the server does not
// serve it; it is false if the resource's group cannot be asked.
func (m *Mapper) ByResource(ctx context.Context, resource schema.GroupVersionResource) (Resource, error) {
	return m.find(ctx, func(all []Resource) (Resource, bool) { return byResource(all, resource) },
		func(gv schema.GroupVersion) bool {
			return mayHave(gv, resource.Group, resource.Version)
		},
		func([]Resource) error { return &meta.NoResourceMatchError{PartialResource: resource} })
}

// ByName returns the resource that a user of kubectl means by a name: the plural, the
// singular, the kind or a short name, in any case, perhaps with a group or its
// beginning, or with a version and a group: "po", "deployments.apps", "Ingress.v1.networking.k8s.io".
// Of several groups, the first in the server's order wins, and full names before short
// ones. meta.IsNoMatchError says of an error that there is none; it is false if the name
// has a group that cannot be asked. The error names resources that are called about so.
func (m *Mapper) ByName(ctx context.Context, name string) (Resource, error) {
	return m.find(ctx, func(all []Resource) (Resource, bool) { return byName(all, name) },
		func(gv schema.GroupVersion) bool { return namesGroup(name, gv) },
		func(all []Resource) error { return &unknownName{name, near(all, name)} })
}

// All returns everything that the server serves, as [Fetch] does, and of what cannot be
// asked what was served before. The slices belong to the Mapper.
func (m *Mapper) All(ctx context.Context) ([]Resource, error) {
	s, err := m.current(ctx)
	if s == nil {
		return nil, err
	}
	return s.document.resources, errors.Join(err, s.document.failed())
}

// find looks in what is known, and, if it is not there, in what the server says now. asked
// returns true for the group versions in which it could be, and unknown is the error if the server has
// these resources and not the wanted one.
func (m *Mapper) find(ctx context.Context, in func([]Resource) (Resource, bool), asked func(schema.GroupVersion) bool, unknown func([]Resource) error) (Resource, error) {
	m.mu.Lock()
	before := m.state
	m.mu.Unlock()
	s, err := m.current(ctx)
	if s != nil {
		if r, ok := in(s.document.resources); ok {
			return r, nil
		}
		if err == nil && s == before {
			s, err = m.ask(ctx, s)
		}
	}
	if err != nil {
		return Resource{}, err
	}
	if r, ok := in(s.document.resources); ok {
		return r, nil
	}
	noMatch := unknown(s.document.resources)
	if failed := s.document.failedOf(asked); failed != nil { // it may be there: noMatch is not wrapped
		return Resource{}, fmt.Errorf("%s, but its group cannot be asked: %w", noMatch.Error(), failed)
	}
	if failed := s.document.failed(); failed != nil {
		return Resource{}, fmt.Errorf("%w; some groups cannot be asked: %w", noMatch, failed)
	}
	return Resource{}, noMatch
}

// current returns what is known, and asks the server first if that is old. An error
// beside a state says that the server could not be asked.
func (m *Mapper) current(ctx context.Context) (*state, error) {
	m.mu.Lock()
	s, stale, maxAge := m.state, m.stale, m.opts.MaxAge
	if time.Now().Before(m.changing) {
		maxAge = min(maxAge, m.opts.MinInterval)
	}
	m.mu.Unlock()
	if s != nil && !stale && time.Since(s.asOf) < maxAge {
		return s, nil
	}
	return m.ask(ctx, s)
}

// ask asks the server unless another goroutine has done so since the caller saw
// known. If it may not be asked yet, known is the answer.
func (m *Mapper) ask(ctx context.Context, known *state) (*state, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return known, context.Cause(ctx)
	}
	m.mu.Lock()
	s, wasStale := m.state, m.stale
	m.mu.Unlock()
	if s != known && !wasStale {
		return s, nil
	}
	if s == nil {
		if err := m.limiter.Wait(ctx); err != nil {
			return nil, err
		}
	} else if !m.limiter.Allow() {
		return s, nil
	}
	m.mu.Lock()
	m.stale = false // what is invalidated from here on may not be in the answer
	m.mu.Unlock()
	asOf := time.Now()
	var earlier *document
	if s != nil {
		earlier = &s.document
	}
	d, err := fetch(ctx, m.client, earlier)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.stale = m.stale || wasStale
		return s, err
	}
	m.state = &state{document: d, asOf: asOf}
	return m.state, nil
}
