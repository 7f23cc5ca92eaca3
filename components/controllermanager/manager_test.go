package controller

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
)

// endsAlone is a context whose end does not come to those that are derived from it.
type endsAlone struct {
	context.Context

	ended chan struct{}
}

// Done implements context.Context.
func (e endsAlone) Done() <-chan struct{} { return e.ended }

// Err implements context.Context.
func (e endsAlone) Err() error {
	select {
	case <-e.ended:
		return context.Canceled
	default:
		return nil
	}
}

// AfterFunc is what the package context calls for a derived context, to be told of the end.
func (endsAlone) AfterFunc(func()) (stop func() bool) { return func() bool { return true } }

type runnerFunc func(ctx context.Context) error

func (f runnerFunc) Run(ctx context.Context) error { return f(ctx) }

// TestManagerThatIsEnded: the end of a context comes to those that are derived from it one after the other. A controller
// that is told late finds that its informers have stopped, which is no failure of a manager whose context has ended.
func TestManagerThatIsEnded(t *testing.T) {
	cl, err := client.New(&rest.Config{Host: "http://server"}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("the informer has stopped while it was needed")
	for name, ends := range map[string]bool{"its context has ended": true, "its context goes on": false} {
		t.Run(name, func(t *testing.T) {
			log, ctx := slog.New(slog.DiscardHandler), endsAlone{t.Context(), make(chan struct{})}
			m := &Manager{
				factory: informer.NewFactory(cl, informer.Options{Logger: log}), recorder: events.New(cl, "test", events.Options{Logger: log}), log: log,
				running: []running{{"fake", runnerFunc(func(context.Context) error {
					if ends {
						close(ctx.ended)
					}
					return stopped
				})}},
			}
			if err := m.Run(ctx); errors.Is(err, stopped) == ends {
				t.Errorf("Run returned %v", err)
			}
		})
	}
}
