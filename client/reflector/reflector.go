package reflector

import (
	"context"

	"github.com/levelwire/levelwire/client/rest"
)

// Reflector keeps one Store in step. Its methods are safe for concurrent use.
type Reflector[T rest.Object] struct {
	source ListerWatcher[T]
	store  Store[T]
	opts   Options
}

// New makes a reflector that has not started.
func New[T rest.Object](source ListerWatcher[T], store Store[T], opts Options) (*Reflector[T], error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Reflector[T]{source: source, store: store, opts: opts.withDefaults()}, nil
}

// Run lists and watches until ctx is done, and then returns nil. Errors of the
// server and of the network are recovered from; the only error returned is the
// store's. It may be called once.
func (r *Reflector[T]) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// LastSyncResourceVersion is the version that the store has surely reached;
// "" before the first list.
func (r *Reflector[T]) LastSyncResourceVersion() string { return "" }

// Stats returns what the reflector did so far.
func (r *Reflector[T]) Stats() Stats { return Stats{} }
