package serviceaccount

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

const (
	// keeperWorkers bounds how many tasks run at the same time, as when thousands
	// of namespaces are created at once.
	keeperWorkers = 8
	// retryAfter is the delay before failed tasks are tried again.
	retryAfter = time.Second
	// batch is how many events are read at a time.
	batch = 64
)

// Keeper restores the defaults of every namespace, and the tokens in secrets. It is
// level-triggered: it begins with everything that exists, and compares again
// whenever something changes or is deleted. Several servers may have one each.
type Keeper struct {
	accounts *Accounts
	tokens   *Tokens
	log      *slog.Logger
	pending  map[task]struct{} // used by the goroutine of follow alone
}

// NewKeeper returns a keeper, which does nothing before Run.
func NewKeeper(accounts *Accounts, tokens *Tokens, log *slog.Logger) *Keeper {
	return &Keeper{accounts: accounts, tokens: tokens, log: log, pending: map[task]struct{}{}}
}

// task is an object to compare with its desired state: a secret if it is named, and
// otherwise the defaults of a namespace.
type task struct{ namespace, secret string }

// Run restores what is missing until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		err := k.follow(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, watchcache.ErrClosed):
			return nil
		case !errors.Is(err, watchcache.ErrExpired):
			return err
		}
		// The keeper was so slow that the cache has evicted changes: list again.
	}
}

// source is a kind that is watched, with the tasks that follow from its events.
type source struct {
	plural string
	fields string // selector; "" for all
	handle func(context.Context, watchcache.Event) error
}

func (k *Keeper) sources() []source {
	return []source{
		{"namespaces", "", k.namespaceChanged},
		{"serviceaccounts", "", k.accountChanged},
		{"configmaps", "metadata.name=" + RootCAName, k.rootCAChanged},
		{"secrets", "type=" + string(corev1.SecretTypeServiceAccountToken), k.secretChanged},
	}
}

// cursor reads a source.
type cursor struct {
	source
	watcher *watchcache.Watcher
}

// follow watches until a cursor expires or ctx ends.
func (k *Keeper) follow(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	var woken sync.WaitGroup
	defer woken.Wait()
	defer cancel()
	var cursors []cursor
	for _, s := range k.sources() {
		watcher, err := k.open(ctx, s)
		if err != nil {
			return err
		}
		defer watcher.Close()
		cursors = append(cursors, cursor{s, watcher})
		woken.Go(func() { forward(ctx, watcher.Ready(), wake) })
	}
	for {
		for _, c := range cursors {
			if err := c.read(ctx); err != nil {
				return err
			}
		}
		var again <-chan time.Time
		if !k.work(ctx) {
			again = time.After(retryAfter)
		}
		select {
		case <-wake:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// forward signals that a cursor has something to read.
func forward(ctx context.Context, from <-chan struct{}, to chan<- struct{}) {
	for {
		select {
		case <-from:
		case <-ctx.Done():
			return
		}
		select {
		case to <- struct{}{}:
		default:
		}
	}
}

func (k *Keeper) open(ctx context.Context, s source) (*watchcache.Watcher, error) {
	r, ok := k.accounts.set.Lookup("", "v1", s.plural)
	if !ok {
		return nil, errors.New("serviceaccount: " + s.plural + " are not served")
	}
	selector, err := fields.ParseSelector(s.fields)
	if err != nil {
		return nil, err
	}
	selection, err := watchcache.NewSelection(r.Resource(), "", "", nil, selector)
	if err != nil {
		return nil, err
	}
	return r.Watch(ctx, selection)
}

func (c cursor) read(ctx context.Context) error {
	var events [batch]watchcache.Event
	for {
		n, err := c.watcher.Read(events[:])
		if err != nil || n == 0 {
			return err
		}
		for _, event := range events[:n] {
			if err := c.handle(ctx, event); err != nil {
				return err
			}
		}
	}
}

func (k *Keeper) namespaceChanged(_ context.Context, event watchcache.Event) error {
	name := event.Object.Attributes.Name
	if event.Type == watchcache.Added || event.Type == watchcache.Deleted && namespace.IsSystem(name) {
		k.pending[task{namespace: name}] = struct{}{}
	}
	return nil
}

func (k *Keeper) accountChanged(ctx context.Context, event watchcache.Event) error {
	if event.Type != watchcache.Deleted {
		return nil
	}
	at := event.Object.Attributes
	if at.Name == DefaultName {
		k.pending[task{namespace: at.Namespace}] = struct{}{}
	}
	return k.reviewSecrets(ctx, at.Namespace)
}

func (k *Keeper) rootCAChanged(_ context.Context, event watchcache.Event) error {
	if event.Type != watchcache.Added {
		k.pending[task{namespace: event.Object.Attributes.Namespace}] = struct{}{}
	}
	return nil
}

func (k *Keeper) secretChanged(_ context.Context, event watchcache.Event) error {
	if at := event.Object.Attributes; event.Type != watchcache.Deleted {
		k.pending[task{at.Namespace, at.Name}] = struct{}{}
	}
	return nil
}

// work runs the pending tasks and reports whether all have succeeded. Failed tasks
// stay pending.
func (k *Keeper) work(ctx context.Context) bool {
	slots := make(chan struct{}, keeperWorkers)
	var mu sync.Mutex
	var done sync.WaitGroup
	for _, t := range k.tasks() {
		slots <- struct{}{}
		done.Go(func() {
			defer func() { <-slots }()
			err := k.do(ctx, t)
			if err != nil && ctx.Err() == nil {
				k.log.Warn("the defaults of a namespace or a token secret could not be restored", "namespace", t.namespace, "secret", t.secret, "error", err)
			}
			mu.Lock()
			defer mu.Unlock()
			// A write that the server itself refuses would be refused again.
			if err == nil || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
				delete(k.pending, t)
			}
		})
	}
	done.Wait()
	return len(k.pending) == 0
}

func (k *Keeper) tasks() []task {
	tasks := make([]task, 0, len(k.pending))
	for t := range k.pending {
		tasks = append(tasks, t)
	}
	return tasks
}

func (k *Keeper) do(ctx context.Context, t task) error {
	if t.secret != "" {
		return k.keepSecret(ctx, t.namespace, t.secret)
	}
	if namespace.IsSystem(t.namespace) {
		// kube-node-lease can be deleted, and is created again then.
		if err := namespace.Ensure(ctx, k.accounts.set, t.namespace); err != nil {
			return err
		}
	}
	return k.accounts.Ensure(ctx, t.namespace)
}
