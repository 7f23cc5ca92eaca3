package encoding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// webhook is a conversion webhook that answers when it is let.
type webhook struct {
	mu     sync.Mutex
	calls  []int // how many objects each call has
	ended  []error
	answer chan error // one value for each call
}

func (h *webhook) convert(ctx context.Context, stored []resource.Object) ([]resource.Object, error) {
	h.mu.Lock()
	h.calls = append(h.calls, len(stored))
	h.mu.Unlock()
	select {
	case err := <-h.answer:
		for _, o := range stored {
			o.SetLabels(map[string]string{"converted": "yes"})
		}
		return stored, err
	case <-ctx.Done():
		h.mu.Lock()
		h.ended = append(h.ended, ctx.Err())
		h.mu.Unlock()
		return nil, ctx.Err()
	}
}

// called returns how many objects each call had.
func (h *webhook) called() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// convertedThings returns a resource whose objects the webhook converts, an encoder,
// and n objects.
func convertedThings(t *testing.T, h *webhook, n int) (Encoder, []*watchcache.Object) {
	t.Helper()
	stored := &resource.Resource{
		Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true, Mixed: true,
		StorePrefix: "/registry/example.com/things/", New: func() resource.Object { return &unstructured.Unstructured{} },
	}
	shown := &resource.Resource{
		Group: "example.com", Version: "v2", Kind: "Thing", Plural: "things", Namespaced: true, Storage: stored, Generation: 1,
		New: stored.New, FromStorageBatch: h.convert,
		FromStorage: func(ctx context.Context, o resource.Object) (resource.Object, error) {
			made, err := h.convert(ctx, []resource.Object{o})
			if err != nil {
				return nil, err
			}
			return made[0], nil
		},
	}
	cache := watchcache.New(stored, watchcache.Options{})
	var objects []*watchcache.Object
	for i := range n {
		text := fmt.Sprintf(`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"it-%d","namespace":"a"}}`, i)
		o, err := cache.Decode(fmt.Sprintf("a/it-%d", i), []byte(text), 2)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return NewEncoder(shown, Form{Media: JSON}, func(string) {}), objects
}

// get is what a GET encodes.
func get(ctx context.Context, p Encoder, o *watchcache.Object) error {
	shown, err := p.json(ctx, o)
	if err == nil && !strings.Contains(string(shown), `"converted":"yes"`) {
		err = fmt.Errorf("got %s", shown)
	}
	return err
}

// TestReadersShareAConversion: readers that need the same form of an object at the
// same time wait for one call of the webhook, whatever they read it for.
func TestReadersShareAConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &webhook{answer: make(chan error)}
		p, objects := convertedThings(t, h, 20)
		errs := make(chan error)
		for range 100 {
			go func() { errs <- p.Prepare(t.Context(), slices.Values(objects)) }()
		}
		synctest.Wait()
		for range 50 {
			go func() { errs <- get(t.Context(), p, objects[7]) }()
			watch := NewEventEncoder(p, "")
			go func() { errs <- watch.Prepare(t.Context(), []watchcache.Event{{Object: objects[7]}}) }()
		}
		synctest.Wait()
		h.answer <- nil
		for range 200 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got := h.called(); !slices.Equal(got, []int{20}) {
			t.Errorf("the webhook was called for %v objects", got)
		}
	})
}

// TestReadersLeaveAConversion: a reader waits for as long as its own context lets
// it, and the call lasts for as long as any reader waits.
func TestReadersLeaveAConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &webhook{answer: make(chan error)}
		p, objects := convertedThings(t, h, 1)
		first, leave := context.WithCancel(t.Context())
		left, stayed := make(chan error), make(chan error)
		go func() { left <- get(first, p, objects[0]) }()
		synctest.Wait()
		go func() { stayed <- get(t.Context(), p, objects[0]) }()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the reader that left got %v", err)
		}
		h.answer <- nil
		if err := <-stayed; err != nil || len(h.called()) != 1 {
			t.Errorf("the reader that stayed got %v after %d calls", err, len(h.called()))
		}

		h = &webhook{answer: make(chan error)}
		p, objects = convertedThings(t, h, 1)
		both, leave := context.WithCancel(t.Context())
		for range 2 {
			go func() { left <- get(both, p, objects[0]) }()
		}
		synctest.Wait()
		leave()
		for range 2 {
			<-left
		}
		synctest.Wait()
		if len(h.ended) != 1 || !errors.Is(h.ended[0], context.Canceled) {
			t.Errorf("after the last reader had left, the call ended with %v", h.ended)
		}
		go func() { stayed <- get(t.Context(), p, objects[0]) }()
		h.answer <- nil
		if err := <-stayed; err != nil {
			t.Errorf("the next reader got %v", err)
		}
	})
}

// TestFailuresOfSharedConversions: a failure is the answer to all that waited, except
// to those whose objects may not be at fault.
func TestFailuresOfSharedConversions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &webhook{answer: make(chan error)}
		p, objects := convertedThings(t, h, 3)
		listed, got := make(chan error), make(chan error)
		for range 2 {
			go func() { listed <- p.Prepare(t.Context(), slices.Values(objects)) }()
		}
		synctest.Wait()
		for range 10 {
			go func() { got <- get(t.Context(), p, objects[1]) }()
		}
		synctest.Wait()
		broken := errors.New("object 2 is broken")
		h.answer <- broken
		for range 2 {
			if err := <-listed; !errors.Is(err, broken) {
				t.Errorf("a list got %v", err)
			}
		}
		h.answer <- nil
		for range 10 {
			if err := <-got; err != nil {
				t.Errorf("a get of another object got %v", err)
			}
		}
		if calls := h.called(); !slices.Equal(calls, []int{3, 1}) {
			t.Errorf("the webhook was called for %v objects", calls)
		}
	})
}

// TestReadersOfAWebhookAreBounded: the gets and lists that wait for one webhook leave
// the server's slots to others. A watch holds no slot, and is not refused.
func TestReadersOfAWebhookAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &webhook{answer: make(chan error)}
		p, objects := convertedThings(t, h, maxConversionWaiters+1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		for _, o := range objects[1:] {
			go func() { done <- get(ctx, p, o) }()
		}
		synctest.Wait()
		if err := get(ctx, p, objects[0]); err == nil || status.Of(err).Code != 429 {
			t.Errorf("one more get got %v", err)
		}
		other := &webhook{answer: make(chan error)}
		q, others := convertedThings(t, other, 1)
		go func() { other.answer <- nil }()
		if err := get(ctx, q, others[0]); err != nil {
			t.Errorf("a get of another definition got %v", err)
		}
		watch := NewEventEncoder(p, "")
		go func() { done <- watch.Prepare(ctx, []watchcache.Event{{Object: objects[0]}}) }()
		synctest.Wait()
		if calls := len(h.called()); calls != len(objects) {
			t.Errorf("%d calls, and the watch's was one of %d", calls, len(objects))
		}
		cancel()
		for range objects {
			<-done
		}
		synctest.Wait()
		if len(underWay.calls) != 0 || len(underWay.waiters) != 0 {
			t.Errorf("%d calls and %d definitions are kept", len(underWay.calls), len(underWay.waiters))
		}
	})
}

// TestPanicOfAConversion: it belongs to the requests that waited, not to the process.
func TestPanicOfAConversion(t *testing.T) {
	p, objects := convertedThings(t, &webhook{}, 1)
	p.res.FromStorageBatch = func(context.Context, []resource.Object) ([]resource.Object, error) { panic("a bug") }
	defer func() {
		if reason := fmt.Sprint(recover()); !strings.HasPrefix(reason, "a bug") {
			t.Errorf("got %v", reason)
		}
	}()
	_ = get(t.Context(), p, objects[0])
}
