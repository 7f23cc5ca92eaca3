package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"

	"github.com/go-json-experiment/json"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/recording"
)

// Options configures Record.
type Options struct {
	// Resources are names of resources as kubectl takes them. A list that is empty and not
	// nil is an error: a program may have computed it, and means none, where all would be
	// recorded. Default: all that can be listed and watched, but secrets.
	Resources []string
	// Exclude are names of resources that are left out.
	Exclude []string
	// Secrets records secrets, too.
	Secrets bool
	// Namespaces restricts resources with namespaces to these. As with Resources, an empty
	// list that is not nil is an error, and so is an empty name in it. Default: all.
	Namespaces []string
	// StartTimeout is how long the recording waits for the first list of each resource
	// before it begins without those that are missing. Default 1 min.
	StartTimeout time.Duration
	// DiscoveryInterval is how often the server is asked for new resources. Default 30 s;
	// negative: never.
	DiscoveryInterval time.Duration
	// SettleTime is how long a change waits for changes of other resources that were made
	// before it and come after it. Default 1 s: the difference in delay of two healthy watches.
	SettleTime time.Duration
	// Progress, unless nil, is called with what has been recorded: once when the state at
	// the start is complete, and then about every second. It must return quickly.
	Progress func(Stats)
	// Logger receives what goes wrong. Default: slog.Default().
	Logger *slog.Logger
	// Writer are the options of the file.
	Writer recording.WriterOptions
}

// validate returns an error that names the option which cannot be used.
func (o *Options) validate() error {
	switch {
	case o.Resources != nil && len(o.Resources) == 0:
		return errors.New("Options.Resources is an empty list: leave it nil for all resources")
	case o.Namespaces != nil && len(o.Namespaces) == 0:
		return errors.New("Options.Namespaces is an empty list: leave it nil for all namespaces")
	case slices.Contains(o.Namespaces, ""):
		return errors.New("Options.Namespaces has an empty name: leave it nil for all namespaces")
	}
	return nil
}

// Stats is what has been recorded.
type Stats struct {
	// Started is false until the state at the start is complete.
	Started bool
	// Resources is the number of resources, Objects that of the objects at the start.
	Resources, Objects int
	// Entries counts changes, Late those that came after later ones had been written,
	// Gaps the lists that took the place of changes.
	Entries, Late, Gaps int64
	// Revision is that of the last change.
	Revision int64
	// Bytes is the size of the file.
	Bytes int64
	// LeftOut are resources that are not recorded.
	LeftOut []recording.LeftOut
}

// recorder is one recording while it is made.
type recorder struct {
	client    *client.Client
	opts      Options
	initial   []recording.Resource // those of the start
	resources []recording.Resource // in the order of the file; the loop's
	info      recording.Info
	base      int64 // the version of the state at the start
	inbox     chan message
	started   chan struct{} // closed when the state at the start is complete
	running   sync.WaitGroup
}

// Record writes what an API server serves into a new file at path, until ctx ends. It
// then returns nil, and the file is complete. It only reads from the server; what it
// cannot read is in Stats.LeftOut and in the file. Errors of connections are recovered
// from; the errors that end a recording are those of its start and of the file.
func Record(ctx context.Context, c *client.Client, path string, opts Options) (stats Stats, err error) {
	if err := opts.validate(); err != nil {
		return stats, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	opts.StartTimeout = orDefault(opts.StartTimeout, time.Minute)
	opts.DiscoveryInterval = orDefault(opts.DiscoveryInterval, 30*time.Second)
	opts.SettleTime = orDefault(opts.SettleTime, time.Second)
	if opts.Progress == nil {
		opts.Progress = func(Stats) {}
	}
	r := &recorder{client: c, opts: opts, inbox: make(chan message, 64), started: make(chan struct{})}
	var out []recording.LeftOut
	if r.initial, out, err = choose(ctx, c, &opts); err != nil {
		return stats, err
	}
	if len(r.initial) == 0 {
		return stats, errors.New("there is nothing to record: the server has no such resource that can be listed and watched")
	}
	exact, base, err := r.currentVersion(ctx)
	if err != nil {
		return stats, fmt.Errorf("the server's version cannot be asked: %w", err)
	}
	r.base = base
	r.resources = slices.Clone(r.initial)
	r.info = recording.Info{Server: c.Host(), ServerVersion: serverVersion(ctx, c), Started: time.Now(), Namespaces: opts.Namespaces, LeftOut: out}
	w, err := recording.Create(path, r.info, opts.Writer)
	if err != nil {
		return stats, err
	}
	stats, err = r.run(ctx, w, exact)
	return stats, errors.Join(err, w.Close())
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// run follows all resources until ctx ends or the file fails.
func (r *recorder) run(ctx context.Context, w *recording.Writer, exact string) (Stats, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := newLoop(r, w)
	for _, resource := range r.initial {
		id, err := w.AddResource(resource)
		if err != nil {
			return l.stats, err
		}
		r.follow(ctx, l, id, resource, exact)
	}
	if r.opts.DiscoveryInterval > 0 {
		r.running.Go(func() { r.discover(ctx) })
	}
	err := l.run(ctx)
	cancel()
	r.running.Wait()
	return l.stats, err
}

// follow starts the reflectors of a resource. exact is the version of the state at the
// start; empty for a resource that has come later.
func (r *recorder) follow(ctx context.Context, l *loop, id int, resource recording.Resource, exact string) {
	namespaces := []string{""}
	if resource.Namespaced && len(r.opts.Namespaces) > 0 {
		namespaces = r.opts.Namespaces
	}
	for _, namespace := range namespaces {
		at := endpoint(r.client, resource, namespace)
		following, stop := context.WithCancel(ctx)
		f := &follower{
			ctx: following, recorder: r, id: id, resource: resource, namespace: namespace, stop: stop, known: map[string]known{},
			source: &source{ListerWatcher: reflector.Resource(at, nil), endpoint: at, exact: exact},
		}
		l.awaited[f] = exact != ""
		r.running.Go(func() {
			defer stop()
			if err := f.run(following); err != nil && following.Err() == nil {
				_ = r.tell(ctx, message{from: f, leftOut: err.Error()})
			}
		})
	}
}

// run runs the reflector of a follower.
func (f *follower) run(ctx context.Context) error {
	var refused error
	reflecting, stop := context.WithCancel(ctx)
	defer stop()
	re, err := reflector.New(f.source, f, reflector.Options{
		Name: f.name(), Logger: slog.New(slog.DiscardHandler), PagedList: true, NoDifferences: true,
		OnError: func(_ string, err error) {
			if !f.replaced && isRefusal(err) {
				refused = err
				stop()
				return
			}
			f.recorder.opts.Logger.Debug("a watch is opened again", "resource", f.name(), "error", err)
			_ = f.recorder.tell(reflecting, message{from: f, cut: true})
		},
		OnProgress: func(version string) {
			revision, err := parseVersion(version)
			if err == nil {
				_ = f.recorder.tell(reflecting, message{from: f, revision: revision})
			}
		},
	})
	if err != nil {
		return err
	}
	if err := re.Run(reflecting); err != nil {
		return err
	}
	return refused
}

// isRefusal reports whether a server will not give a resource, however often it is asked.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
}

// discover asks for resources that the server has not had before, until ctx ends.
func (r *recorder) discover(ctx context.Context) {
	ticker := time.NewTicker(r.opts.DiscoveryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if all, _, err := choose(ctx, r.client, &r.opts); err == nil {
			_ = r.tell(ctx, message{served: all})
		}
	}
}

// addNew follows those of the served resources that are not followed yet.
func (l *loop) addNew(ctx context.Context, served []recording.Resource) error {
	r := l.recorder
	for _, resource := range served {
		if slices.Contains(r.resources, resource) {
			continue
		}
		id, err := l.writer.AddResource(resource)
		if err != nil {
			return err
		}
		r.resources = append(r.resources, resource)
		r.follow(ctx, l, id, resource, "")
	}
	return nil
}

// serverVersion is what the server says that it is; empty if it does not.
func serverVersion(ctx context.Context, c *client.Client) string {
	resp, err := c.Raw(ctx, client.RawRequest{Path: "/version"})
	if err != nil {
		return ""
	}
	defer resp.Body.Close() //nolint:errcheck // It is only read.
	var info version.Info
	if resp.StatusCode != http.StatusOK || json.UnmarshalRead(resp.Body, &info) != nil {
		return ""
	}
	return info.GitVersion
}
