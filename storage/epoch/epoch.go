package epoch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/levelwire/levelwire/internal/atomicfile"
	"github.com/levelwire/levelwire/storage"
)

const (
	// Key is where a store's epoch is stored.
	Key = "/levelwire/epoch"
	// bump is how far the revisions of a new epoch are above those that this server
	// remembers: other servers may have sent later ones.
	bump = 1_000_000_000
	// maxFormer bounds the identities that an epoch remembers.
	maxFormer = 16
	// checkInterval is how often a running server looks whether the epoch is the same.
	checkInterval = 10 * time.Second
	// A start tries again at retryInterval, for retryTime at most, while the storage does
	// not answer.
	retryInterval = 500 * time.Millisecond
	retryTime     = time.Minute
)

// ErrEnded ends a server whose store was restored or replaced while it ran. The next
// start begins a new epoch.
var ErrEnded = errors.New("the storage was restored from a backup, or replaced, while this server ran: start the server again")

var (
	errUnreadable = errors.New("the value of " + Key + " is damaged: delete the key in etcd, and start the server again")
	// errNotKept is better than versions that clients take for those of before.
	errNotKept = errors.New("the storage may have been restored from a backup, or replaced, and does not keep the epoch that sets its versions apart" +
		" from those that clients know: make room in it (an embedded one: on the disk, or with a larger quota), and let the user read and write " + Key +
		"; then start the server again")
)

// stored is the epoch of a store.
type stored struct {
	ID string `json:"id"`
	// Offset is added to the store's revisions.
	Offset storage.Revision `json:"offset"`
	// Former are the identities of epochs whose revisions are below this one's.
	Former []string `json:"former,omitempty"`
}

// remembered is what a server knows of the store that it had last.
type remembered struct {
	ID       string           `json:"id"`               // "" if the store did not keep an epoch
	Revision storage.Revision `json:"revision"`         // with the offset
	Former   []string         `json:"former,omitempty"` // as in stored
}

// isBackupOf reports whether a store with the epoch may be a backup of the store that is
// remembered, or one that took its place.
func (e *stored) isBackupOf(known *remembered) bool {
	return e.ID == "" || e.continues(known.ID) || slices.Contains(known.Former, e.ID)
}

// Config says how a server remembers its store.
type Config struct {
	// Path is the file in which it does.
	Path string
	// AcceptOther begins a new epoch also in a store that is another one than the
	// server remembers, and has an epoch of its own: other servers of that store end
	// then, and have to be started again.
	AcceptOther bool
	// Logger gets what operators should see. Nil is slog.Default().
	Logger *slog.Logger
}

// ErrOther refuses a store, unless Config.AcceptOther is set: it is another one than the
// server remembers, and it has an epoch, which servers of its own may go by.
var ErrOther = errors.New("this is not the storage that was here before, and it may have servers of its own")

// Tracker notices when a store goes back or is replaced.
type Tracker struct {
	store  storage.Store // without the offset
	config Config
	logger *slog.Logger

	epoch    stored
	modified storage.Revision // of the key; 0 if the store does not keep it
	last     remembered       // as it is in the file
}

// Open returns the store as clients are to see it, and a Tracker to be Run. It returns
// ErrOther for a store that is not the server's.
//
// A store that cannot keep an epoch, because it is full or refuses the key, is returned
// as it is, with a warning in the log, if the server remembers no epoch of it and it has
// not gone back; the Tracker begins its epoch when it can. In all other cases that is an
// error, as for a store that does not answer or whose epoch cannot be read: without the
// offset, its revisions would be below those that clients know.
func Open(ctx context.Context, store storage.Store, config Config) (storage.Store, *Tracker, error) {
	logger := cmp.Or(config.Logger, slog.Default())
	t := &Tracker{store: store, config: config, logger: logger}
	known, err := t.read()
	if err != nil {
		return nil, nil, err
	}
	for began := time.Now(); ; {
		err := t.enter(ctx, known)
		switch {
		case errors.Is(err, storage.ErrConflict):
			continue // another server of the store was faster
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case isDown(err) && time.Since(began) < retryTime:
			logger.Warn("waiting for the storage's epoch", "error", err)
			sleep(ctx, retryInterval)
			continue
		case isDown(err), errors.Is(err, storage.ErrClosed), errors.Is(err, errUnreadable), errors.Is(err, errNotKept), errors.Is(err, ErrOther):
			return nil, nil, fmt.Errorf("the storage's epoch: %w", err)
		case err != nil:
			logger.Warn("the storage does not keep its epoch: if it is restored from a backup, clients may miss changes", "key", Key, "error", err)
		}
		return Shift(store, t.epoch.Offset), t, nil
	}
}

// isDown reports that a store does not answer. One that is full does.
func isDown(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrFull)
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// enter reads the store's epoch, and begins one if there is none or if it does not
// continue the one that the server knows.
func (t *Tracker) enter(ctx context.Context, known *remembered) error {
	t.epoch = stored{}
	t.modified = 0
	item, err := t.store.Get(ctx, Key, 0)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return t.serveWithout(ctx, known, err)
	default:
		if err := json.Unmarshal(item.Value, &t.epoch); err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	t.modified = item.Modified
	current, err := t.store.Current(ctx)
	if err != nil {
		return err
	}
	next := t.epoch
	switch reached := current + t.epoch.Offset; {
	case known != nil && known.ID != "" && !t.epoch.isBackupOf(known) && !t.config.AcceptOther:
		return fmt.Errorf("%w: %s remembers another one", ErrOther, t.config.Path)
	case known != nil && (known.ID != "" && !t.epoch.continues(known.ID) || reached < known.Revision):
		next = stored{ID: uuid.NewString(), Offset: max(reached, known.Revision) + bump, Former: t.epoch.Former}
		for _, id := range []string{t.epoch.ID, known.ID} {
			if id != "" && !slices.Contains(next.Former, id) {
				next.Former = append(next.Former, id)
			}
		}
		next.Former = next.Former[max(0, len(next.Former)-maxFormer):]
		t.logger.Warn("the storage was restored from a backup, or is another one: versions begin above all that clients know, and older ones expire",
			"remembered", known.Revision, "found", reached, "begin", current+next.Offset)
	case t.modified == 0:
		next.ID = uuid.NewString()
	default:
		t.remember(current)
		return nil
	}
	err = t.write(ctx, next)
	if refused(err) {
		if next.Offset > 0 {
			return fmt.Errorf("%w: %w", errNotKept, err)
		}
		return t.serveWithout(ctx, known, err)
	}
	return err
}

// refused reports that a store answers, and does not do what it was asked for.
func refused(err error) bool {
	return err != nil && !isDown(err) && !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrClosed)
}

// write makes an epoch that of the store.
func (t *Tracker) write(ctx context.Context, next stored) error {
	value, err := json.Marshal(next)
	if err != nil {
		return err
	}
	modified := t.modified
	if modified == 0 {
		modified, err = t.store.Create(ctx, Key, value, 0)
	} else {
		modified, err = t.store.Update(ctx, Key, value, modified, 0)
	}
	if err != nil {
		return err
	}
	t.epoch, t.modified = next, modified
	t.remember(modified)
	return nil
}

// serveWithout returns cause, for which the store's epoch is not known, or errNotKept if
// the store cannot be served because of that.
func (t *Tracker) serveWithout(ctx context.Context, known *remembered, cause error) error {
	if !refused(cause) {
		return cause
	}
	current, err := t.store.Current(ctx)
	if err != nil {
		return err
	}
	if known != nil && (known.ID != "" || current < known.Revision) {
		return fmt.Errorf("%w: %w", errNotKept, cause)
	}
	t.remember(current)
	return cause
}

// continues reports whether the revisions of an epoch with that identity are below, or
// of, this one.
func (e *stored) continues(id string) bool { return id == e.ID || slices.Contains(e.Former, id) }

// read returns what the file says; nil if there is none, or it is damaged.
func (t *Tracker) read() (*remembered, error) {
	data, err := os.ReadFile(t.config.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var known remembered
	if err := json.Unmarshal(data, &known); err != nil || known.Revision == 0 {
		t.logger.Warn("the file that remembers the storage is damaged, and is written anew", "file", t.config.Path)
		return nil, nil
	}
	return &known, nil
}

// remember replaces the file, and syncs it. A disk that is full leaves the former one.
func (t *Tracker) remember(current storage.Revision) {
	now := remembered{t.epoch.ID, current + t.epoch.Offset, t.epoch.Former}
	if now.ID == t.last.ID && now.Revision == t.last.Revision {
		return // the former ones do not change without the ID
	}
	data, err := json.Marshal(now)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(t.config.Path), 0o700), atomicfile.Write(t.config.Path, data, 0o600))
	}
	if err != nil {
		t.logger.Debug("the storage's version was not remembered", "file", t.config.Path, "error", err)
		return
	}
	t.last = now
}

// Run remembers how far the store has come until ctx ends. It returns ErrEnded if the
// store has gone back or its epoch has changed.
func (t *Tracker) Run(ctx context.Context) error {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := t.check(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			return t.check(ctx)
		}
	}
}

// check returns ErrEnded, or nil if all is well or the store does not answer.
func (t *Tracker) check(ctx context.Context) error {
	current, err := t.store.Current(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is asked again
	}
	if t.modified == 0 {
		return t.checkWithout(ctx, current)
	}
	item, err := t.store.Get(ctx, Key, 0)
	switch {
	case current+t.epoch.Offset < t.last.Revision, errors.Is(err, storage.ErrNotFound), err == nil && item.Modified != t.modified:
		return ErrEnded
	case err == nil:
		t.remember(current)
	}
	return nil
}

// checkWithout is check for a store that did not keep its epoch so far. It tries again to
// begin one, which has no offset: clients know the store's revisions as they are.
func (t *Tracker) checkWithout(ctx context.Context, current storage.Revision) error {
	item, err := t.store.Get(ctx, Key, 0)
	var begun stored // by another server
	switch {
	case current < t.last.Revision:
		return ErrEnded
	case errors.Is(err, storage.ErrNotFound):
		err = t.write(ctx, stored{ID: uuid.NewString()})
	case err != nil:
	case json.Unmarshal(item.Value, &begun) != nil || begun.Offset != 0:
		return ErrEnded
	default:
		t.epoch, t.modified = begun, item.Modified
	}
	if err == nil {
		t.logger.Info("the storage keeps its epoch now", "key", Key)
	}
	t.remember(current)
	return nil
}
