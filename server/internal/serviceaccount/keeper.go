package serviceaccount

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// maxRetryAfter is that delay for what a user may have made impossible, after some attempts.
	maxRetryAfter = time.Minute
	// batch is how many events are read at a time.
	batch = 64
)

// Keeper restores the defaults of every namespace, and the tokens in secrets. It is
// level-triggered: it begins with everything that exists, and compares again
// whenever something changes or is deleted. Several servers may have one each.
//
// The ConfigMap RootCAName it leaves to a kube-controller-manager, if one runs (manager.go).
type Keeper struct {
	accounts *Accounts
	tokens   *Tokens
	log      *slog.Logger

	// What follows is used by the goroutine of follow alone.
	pending map[task]time.Time // since when
	manager manager
}

// NewKeeper returns a keeper, which does nothing before Run.
func NewKeeper(accounts *Accounts, tokens *Tokens, log *slog.Logger) *Keeper {
	return &Keeper{accounts: accounts, tokens: tokens, log: log, pending: map[task]time.Time{}}
}

// task is an object of a namespace to compare with its desired state: a secret if it is named, the
// ConfigMap RootCAName, or else the account DefaultName.
type task struct {
	namespace, secret string
	rootCA            bool
}

// add queues a task.
func (k *Keeper) add(t task) {
	if _, ok := k.pending[t]; !ok {
		k.pending[t] = time.Now()
	}
}

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
	group, plural string
	fields        string // selector; "" for all
	handle        func(context.Context, watchcache.Event) error
}

// sources returns them. The lease of the kube-controller-manager is the last one.
func (k *Keeper) sources() []source {
	return []source{
		{"", "namespaces", "", k.namespaceChanged},
		{"", "serviceaccounts", "", k.accountChanged},
		{"", "configmaps", "metadata.name=" + RootCAName, k.rootCAChanged},
		{"", "secrets", "type=" + string(corev1.SecretTypeServiceAccountToken), k.secretChanged},
		{coordinationv1.GroupName, "leases", "metadata.namespace=" + metav1.NamespaceSystem + ",metadata.name=" + managerLease, k.managerChanged},
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
		if err := k.readManager(ctx, cursors[len(cursors)-1]); err != nil {
			return err
		}
		if err := k.reviewManager(ctx); err != nil {
			return err
		}
		var again <-chan time.Time
		if wait := k.work(ctx); wait > 0 {
			again = time.After(wait)
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
	r, ok := k.accounts.set.Lookup(s.group, "v1", s.plural)
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
		k.add(task{namespace: name})
		k.add(task{namespace: name, rootCA: true})
	}
	return nil
}

func (k *Keeper) accountChanged(ctx context.Context, event watchcache.Event) error {
	if event.Type != watchcache.Deleted {
		return nil
	}
	at := event.Object.Attributes
	if at.Name == DefaultName {
		k.add(task{namespace: at.Namespace})
	}
	return k.reviewSecrets(ctx, at.Namespace)
}

func (k *Keeper) rootCAChanged(_ context.Context, event watchcache.Event) error {
	if event.Type != watchcache.Added {
		k.add(task{namespace: event.Object.Attributes.Namespace, rootCA: true})
	}
	return nil
}

func (k *Keeper) secretChanged(_ context.Context, event watchcache.Event) error {
	if at := event.Object.Attributes; event.Type != watchcache.Deleted {
		k.add(task{namespace: at.Namespace, secret: at.Name})
	}
	return nil
}

// work runs the pending tasks whose time has come, and returns after how long there is something
// to do again if nothing changes; 0 is never. Failed tasks stay pending.
func (k *Keeper) work(ctx context.Context) time.Duration {
	due, wait := k.due(time.Now())
	slots := make(chan struct{}, keeperWorkers)
	var mu sync.Mutex
	var done sync.WaitGroup
	for _, t := range due {
		slots <- struct{}{}
		done.Go(func() {
			defer func() { <-slots }()
			err := k.do(ctx, t)
			if err != nil && ctx.Err() == nil {
				k.log.Warn("the defaults of a namespace or a token secret could not be restored", "namespace", t.namespace, "secret", t.secret, "error", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil || isFinal(err) {
				delete(k.pending, t)
			} else {
				wait = sooner(wait, retryAfter)
			}
		})
	}
	done.Wait()
	return wait
}

// isFinal reports whether a write would be refused again: by the server itself, or by the storage, as too large.
func isFinal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// due returns the tasks whose time has come, and after how long that changes.
func (k *Keeper) due(now time.Time) (tasks []task, wait time.Duration) {
	wait = k.manager.left(now)
	for t, since := range k.pending {
		if left := since.Add(publishAfter).Sub(now); t.rootCA && k.manager.runs && left > 0 {
			wait = sooner(wait, left)
			continue
		}
		tasks = append(tasks, t)
	}
	return tasks, wait
}

// sooner returns the shorter of two waits, of which 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
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
	switch {
	case !t.rootCA:
		return unlessTerminating(k.accounts.ensureDefault(ctx, t.namespace))
	case k.manager.runs:
		return unlessTerminating(k.accounts.createRootCA(ctx, t.namespace))
	}
	return unlessTerminating(k.accounts.correctRootCA(ctx, t.namespace))
}
