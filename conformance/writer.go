package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/levelwire/levelwire/conformance/history"
)

// writer creates, changes and deletes objects that are its alone, one after
// the other, and remembers what was acknowledged.
type writer struct {
	env    *Env
	number int
	keys   int
	pause  time.Duration

	done    []history.Write
	present map[string]bool   // keys that exist
	last    map[string]uint64 // the revision of the key's last write
	count   int
	random  *rand.Rand
}

var colors = []string{"red", "blue", ""}

// begin makes some of the keys: the state that lists begin with. It deletes
// nothing: no watcher is there yet that would see the deletion's revision.
func (w *writer) begin(ctx context.Context) error {
	w.random = rand.New(rand.NewPCG(uint64(w.number), 7))
	w.present, w.last = map[string]bool{}, map[string]uint64{}
	for i := range w.keys / 2 {
		if err := w.set(ctx, w.key(i), colors[i%len(colors)]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) key(i int) string { return fmt.Sprintf("w%d-%d", w.number, i) }

// run makes n writes. What it does depends on its number only.
func (w *writer) run(ctx context.Context, n int) error {
	for range n {
		key := w.key(w.random.IntN(w.keys))
		color := colors[w.random.IntN(len(colors))]
		var err error
		if w.present[key] && w.random.IntN(5) == 0 {
			err = w.delete(ctx, key)
		} else {
			err = w.set(ctx, key, color)
		}
		if err != nil {
			return err
		}
		if err := sleep(ctx, w.pause); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the objects that watchers wait for.
func (w *writer) finish(ctx context.Context) error {
	w.present, w.last = map[string]bool{}, map[string]uint64{}
	if err := w.set(ctx, endRed, "red"); err != nil {
		return err
	}
	return w.set(ctx, endBlue, "blue")
}

// set creates or replaces an object.
func (w *writer) set(ctx context.Context, key, color string) error {
	w.count++
	content := fmt.Sprintf("%d.%d", w.number, w.count)
	var labels []string
	if color != "" {
		labels = []string{"color=" + color}
	}
	body := configMap(key, content, labels...)
	for {
		written, err := w.send(ctx, key, body)
		if err != nil {
			// The write may have happened without its answer arriving. Asking
			// shows it, as the key is ours alone; if it has not, it is repeated.
			now, lookErr := w.lookAfter(ctx, key, err)
			if lookErr != nil {
				return lookErr
			}
			if now == nil || now.Data["content"] != content {
				continue
			}
			written = *now
		}
		revision, err := parseVersion(written.version())
		if err != nil {
			return err
		}
		w.present[key], w.last[key] = true, revision
		w.done = append(w.done, history.Write{Key: key, State: stateOf(&written), Revision: revision})
		return nil
	}
}

func (w *writer) send(ctx context.Context, key, body string) (object, error) {
	if w.present[key] {
		return w.env.put(ctx, w.env.configMaps()+"/"+key, body)
	}
	return w.env.post(ctx, w.env.configMaps(), key, body)
}

// delete deletes an object. The answer does not say at which revision.
func (w *writer) delete(ctx context.Context, key string) error {
	for w.present[key] {
		if err := w.sendDelete(ctx, key); err != nil {
			now, lookErr := w.lookAfter(ctx, key, err)
			if lookErr != nil {
				return lookErr
			}
			if now != nil {
				continue
			}
		}
		w.present[key] = false
	}
	w.env.forget(w.env.configMaps() + "/" + key)
	w.done = append(w.done, history.Write{Key: key, Deletes: true, After: w.last[key]})
	return nil
}

func (w *writer) sendDelete(ctx context.Context, key string) error {
	r := request{method: http.MethodDelete, path: w.env.configMaps() + "/" + key}
	a, err := w.env.exchange(ctx, r)
	if err == nil && a.code != http.StatusOK {
		err = &refused{request: r, answer: a}
	}
	return err
}

// retryPause is between two attempts against a server that does not answer.
const retryPause = 50 * time.Millisecond

// lookAfter finds out what became of a key after a write that failed: its
// object, or nil if there is none. It repeats until there is an answer. An
// error that no repetition mends comes back.
func (w *writer) lookAfter(ctx context.Context, key string, failure error) (*object, error) {
	for {
		var no *refused
		if errors.As(failure, &no) && !transient(no.answer.code) {
			return nil, failure
		}
		if err := sleep(ctx, retryPause); err != nil {
			return nil, fmt.Errorf("%w; the last attempt: %w", err, failure)
		}
		r := request{path: w.env.configMaps() + "/" + key}
		a, err := w.env.exchange(ctx, r)
		switch {
		case err != nil:
			failure = err
		case a.code == http.StatusNotFound:
			w.present[key] = false
			return nil, nil
		case a.code == http.StatusOK:
			now := new(object)
			w.present[key] = true
			return now, a.decode(now)
		default:
			failure = &refused{request: r, answer: a}
		}
	}
}

// transient says whether a refused write may be tried again: the server is
// busy or going, or an attempt before was carried out after all.
func transient(code int) bool {
	return code >= 500 || code == http.StatusTooManyRequests || code == http.StatusConflict || code == http.StatusNotFound
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
