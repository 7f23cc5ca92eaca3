package serviceaccount

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Of legacy tokens the server notes when each was last used, and since when it notes that.
// Kubernetes' controller manager marks those that were not used for a year, and deletes
// them a year later.

const (
	// TrackingName is the ConfigMap in kube-system that says since when uses are noted.
	TrackingName = "kube-apiserver-legacy-service-account-token-tracking"
	sinceKey     = "since"

	lastUsedLabel     = "kubernetes.io/legacy-token-last-used"
	invalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"

	// recreateAfter is how long a deleted ConfigMap stays away at least after it was created: a
	// server that does not note uses deletes it, and two such servers must not play with it.
	recreateAfter = 30 * time.Minute
)

// Tracking notes the uses of legacy tokens, in the background: no request waits for the write,
// or fails while the storage takes none. It is safe for concurrent use.
type Tracking struct {
	set *registry.Set
	now func() time.Time
	log *slog.Logger

	mu      sync.Mutex
	used    map[use]noting // to be noted, and refused; bounded by the secrets whose tokens are used within a day
	created time.Time      // when the ConfigMap was created by this server
	wake    chan struct{}
}

// use is a secret whose token was used.
type use struct {
	namespace, name string
	uid             types.UID
}

// noting is how far the note of a use has come. The zero value is to be written.
type noting struct {
	delay   time.Duration // after the last failure; 0: none has failed
	again   time.Time     // not before
	refused string        // the day on which it was refused for good; each use of that day would be refused again
}

// NewTracking returns what notes uses while Run runs. now may be nil.
func NewTracking(set *registry.Set, now func() time.Time, log *slog.Logger) *Tracking {
	if now == nil {
		now = time.Now
	}
	return &Tracking{set: set, now: now, log: log, used: map[use]noting{}, wake: make(chan struct{}, 1)}
}

func (k *Tracking) today() string { return k.now().UTC().Format(time.DateOnly) }

// isNoted reports whether a label says that a token was used today. Another server's clock may
// be ahead.
func (k *Tracking) isNoted(labels map[string]string) bool {
	tomorrow := k.now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	return labels[lastUsedLabel] == k.today() || labels[lastUsedLabel] == tomorrow
}

// note has the use of a secret's token noted. k may be nil.
func (k *Tracking) note(secret *corev1.Secret) {
	if k == nil || k.isNoted(secret.Labels) {
		return
	}
	k.mu.Lock()
	u := use{secret.Namespace, secret.Name, secret.UID}
	n, known := k.used[u]
	if known && (n.refused == "" || n.refused == k.today()) {
		k.mu.Unlock()
		return
	}
	k.used[u] = noting{}
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Ensure creates the ConfigMap, if namespace is the one that has it. It is part of the start, so
// that no list after it differs by the ConfigMap.
func (k *Tracking) Ensure(ctx context.Context, namespace string) error {
	if namespace != metav1.NamespaceSystem {
		return nil
	}
	configMaps, ok := k.set.Lookup("", "v1", "configmaps")
	if !ok {
		return nil
	}
	return unlessTerminating(k.correct(ctx, configMaps))
}

// correct creates the ConfigMap, or gives it the date that it lacks.
func (k *Tracking) correct(ctx context.Context, configMaps registry.Registry) error {
	result, err := configMaps.Update(ctx, metav1.NamespaceSystem, TrackingName, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: TrackingName}, Data: map[string]string{sinceKey: k.today()},
			}, nil
		}
		has, err := registry.As[*corev1.ConfigMap](configMaps, current)
		if err != nil {
			return nil, err
		}
		if _, err := time.Parse(time.DateOnly, has.Data[sinceKey]); err == nil {
			return current, nil
		}
		changed := has.DeepCopy()
		if changed.Data == nil {
			changed.Data = map[string]string{}
		}
		changed.Data[sinceKey] = k.today()
		return changed, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, MayCreate: true, Unconditional: true})
	if err == nil && result.Created {
		k.mu.Lock()
		k.created = k.now()
		k.mu.Unlock()
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Run notes uses, and keeps the ConfigMap, until ctx ends.
func (k *Tracking) Run(ctx context.Context) error {
	for {
		err := k.follow(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, watchcache.ErrClosed):
			return nil
		case !errors.Is(err, watchcache.ErrExpired):
			return err
		}
	}
}

// follow is Run until the watch of the ConfigMap ends.
func (k *Tracking) follow(ctx context.Context) error {
	configMaps, ok := k.set.Lookup("", "v1", "configmaps")
	if !ok {
		return errors.New("serviceaccount: configmaps are not served")
	}
	watcher, err := configMaps.WatchObject(ctx, metav1.NamespaceSystem, TrackingName)
	if err != nil {
		return err
	}
	defer watcher.Close()
	due, delay := true, time.Duration(0) // the ConfigMap may have to be written
	for {
		changed, err := watcher.Skip()
		if err != nil {
			return err
		}
		due = due || changed
		wait := k.noteUses(ctx)
		if due {
			left, err := k.review(ctx, configMaps)
			due = err != nil || left > 0
			if err != nil {
				delay = min(max(2*delay, retryAfter), maxRetryAfter)
				k.log.Warn("since when the use of legacy tokens is noted cannot be published", "configmap", TrackingName, "error", err, "delay", delay)
				left = delay
			} else {
				delay = 0
			}
			wait = sooner(wait, left)
		}
		var again <-chan time.Time
		if wait > 0 {
			again = time.After(wait)
		}
		select {
		case <-watcher.Ready():
		case <-k.wake:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// review corrects the ConfigMap, and returns after how long it may be created again; 0: it is in
// order.
func (k *Tracking) review(ctx context.Context, configMaps registry.Registry) (time.Duration, error) {
	_, err := configMaps.Get(ctx, metav1.NamespaceSystem, TrackingName)
	if apierrors.IsNotFound(err) {
		k.mu.Lock()
		left := k.created.Add(recreateAfter).Sub(k.now())
		k.mu.Unlock()
		if left > 0 {
			return left, nil
		}
	} else if err != nil {
		return 0, err
	}
	return 0, k.correct(ctx, configMaps)
}

// noteUses writes what is to be noted, and returns after how long it has to be tried again; 0: all
// is written.
func (k *Tracking) noteUses(ctx context.Context) (wait time.Duration) {
	for u, n := range k.pending() {
		left := n.again.Sub(k.now())
		if left <= 0 {
			left = k.noteOne(ctx, u, n)
		}
		if left > 0 {
			wait = sooner(wait, left)
		}
	}
	return wait
}

// pending returns the uses that are to be written, and forgets what was refused on an earlier
// day. Only the day's refusals stay out of it.
func (k *Tracking) pending() map[use]noting {
	k.mu.Lock()
	defer k.mu.Unlock()
	pending, today := map[use]noting{}, k.today()
	for u, n := range k.used {
		switch n.refused {
		case "":
			pending[u] = n
		case today:
		default: // under the lock, or a use that is noted meanwhile would be forgotten with it
			delete(k.used, u)
		}
	}
	return pending
}

// noteOne writes a use, and returns after how long it has to be tried again; 0: not any more.
func (k *Tracking) noteOne(ctx context.Context, u use, n noting) time.Duration {
	err := k.noteUse(ctx, u)
	if err == nil {
		k.settle(u, nil)
		return 0
	}
	if n.delay == 0 && ctx.Err() == nil {
		k.log.Warn("the use of a legacy token cannot be noted", "namespace", u.namespace, "secret", u.name, "error", err)
	}
	if isFinal(err) {
		k.settle(u, &noting{refused: k.today()})
		return 0
	}
	delay := min(max(2*n.delay, retryAfter), maxRetryAfter)
	k.settle(u, &noting{delay: delay, again: k.now().Add(delay)})
	return delay
}

// settle says what has come of a use; nil: nothing remains of it.
func (k *Tracking) settle(u use, n *noting) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n == nil {
		delete(k.used, u)
		return
	}
	k.used[u] = *n
}

func (k *Tracking) noteUse(ctx context.Context, u use) error {
	secrets, ok := k.set.Lookup("", "v1", "secrets")
	if !ok {
		return nil
	}
	_, err := secrets.Update(ctx, u.namespace, u.name, func(current resource.Object) (resource.Object, error) {
		if current == nil || current.GetUID() != u.uid {
			return nil, apierrors.NewNotFound(corev1.Resource("secrets"), u.name)
		}
		if k.isNoted(current.GetLabels()) {
			return current, nil
		}
		changed := current.DeepCopyObject().(resource.Object)
		labels := changed.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[lastUsedLabel] = k.today()
		changed.SetLabels(labels)
		return changed, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, Unconditional: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
