package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/kms/pkg/service"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/encryption"
	"github.com/levelwire/levelwire/storage/storagetest"
)

const kmsProvider = "      - kms:\n          apiVersion: v2\n          name: vault\n          endpoint: unix:///run/kms.sock\n          timeout: 3s\n"

// fakePlugin is a KMS plugin whose encryption is a prefix with the key.
type fakePlugin struct {
	mu       sync.Mutex
	key      string
	down     error
	decrypts int
}

func newFakePlugin() *fakePlugin { return &fakePlugin{key: "1"} }

func (f *fakePlugin) set(key string, down error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.key, f.down = key, down
}

func (f *fakePlugin) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &service.EncryptResponse{KeyID: f.key, Ciphertext: append([]byte(f.key+":"), data...)}, f.down
}

func (f *fakePlugin) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decrypts++
	plain, ok := bytes.CutPrefix(r.Ciphertext, []byte(r.KeyID+":"))
	if !ok {
		return nil, status.Error(codes.InvalidArgument, "not mine")
	}
	return plain, f.down
}

func (f *fakePlugin) Status(context.Context) (*service.StatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: f.key}, f.down
}

// TestPluginRotatesItsKey: values with the former key are stale within a minute.
func TestPluginRotatesItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin, inner := newFakePlugin(), storagetest.OpenMemory(t)
		store := wrap(t, inner, document(kmsProvider), encryption.Options{}.WithPlugin(plugin))
		create(t, store, secretKey, "confidential")
		if item := get(t, store, secretKey); item.Stale {
			t.Error("a new value is stale")
		}
		plugin.set("2", nil)
		time.Sleep(61 * time.Second)
		item := get(t, store, secretKey)
		if string(item.Value) != "confidential" || !item.Stale {
			t.Errorf("%q, stale %v", item.Value, item.Stale)
		}
		if _, err := store.Update(t.Context(), secretKey, item.Value, item.Modified, 0); err != nil {
			t.Fatal(err)
		}
		if item := get(t, store, secretKey); item.Stale {
			t.Error("a value that was written again is stale")
		}
	})
}

// TestPluginIsDown: reads with a known seed go on, writes for three minutes, and a
// server that starts meanwhile reads when the plugin is back.
func TestPluginIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin, inner := newFakePlugin(), storagetest.OpenMemory(t)
		store := wrap(t, inner, document(kmsProvider), encryption.Options{}.WithPlugin(plugin))
		create(t, store, secretKey, "confidential")
		plugin.set("1", errors.New("connection refused"))
		time.Sleep(2 * time.Minute)
		create(t, store, secretKey+"2", "confidential")
		if err := store.Check(); err == nil {
			t.Error("a plugin that is down is healthy")
		}
		time.Sleep(2 * time.Minute)
		if _, err := store.Create(t.Context(), secretKey+"3", []byte("x"), 0); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("a write with an expired seed: %v", err)
		}
		get(t, store, secretKey)
		second := wrap(t, inner, document(kmsProvider), encryption.Options{}.WithPlugin(plugin))
		if _, err := second.Get(t.Context(), secretKey, 0); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("a read without the plugin: %v", err)
		}
		plugin.set("1", nil)
		time.Sleep(11 * time.Second)
		if item := get(t, second, secretKey); string(item.Value) != "confidential" {
			t.Errorf("read as %q", item.Value)
		}
		if err := errors.Join(store.Check(), second.Check()); err != nil {
			t.Error(err)
		}
		create(t, store, secretKey+"3", "confidential")
	})
}

// TestPluginIsAskedOncePerSeed: a list of many values costs one call.
func TestPluginIsAskedOncePerSeed(t *testing.T) {
	plugin, inner := newFakePlugin(), storagetest.OpenMemory(t)
	store := wrap(t, inner, document(kmsProvider), encryption.Options{}.WithPlugin(plugin))
	for i := range 50 {
		create(t, store, fmt.Sprintf("/registry/secrets/%d", i), "confidential")
	}
	second := wrap(t, inner, document(kmsProvider), encryption.Options{}.WithPlugin(plugin))
	if _, err := second.List(t.Context(), "/registry/", storage.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if plugin.decrypts != 1 {
		t.Errorf("the plugin was asked %d times", plugin.decrypts)
	}
}

// lender is a store that lends values, and a plugin that counts calls during loans.
type lender struct {
	storage.Store
	*fakePlugin
	lent, loans, during atomic.Int64
}

func (l *lender) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	page, err := l.Store.List(ctx, prefix, opts)
	if err != nil || !opts.Borrow || len(page.Items) == 0 {
		return page, err
	}
	l.lent.Add(1)
	l.loans.Add(1)
	page.Items = slices.Clone(page.Items)
	for i := range page.Items {
		page.Items[i].Value = bytes.Clone(page.Items[i].Value)
	}
	page.Release = func() {
		for _, item := range page.Items {
			clear(item.Value)
		}
		l.loans.Add(-1)
	}
	return page, nil
}

func (l *lender) Decrypt(ctx context.Context, uid string, r *service.DecryptRequest) ([]byte, error) {
	l.during.Add(l.loans.Load())
	return l.fakePlugin.Decrypt(ctx, uid, r)
}

// TestNothingIsLentWhileAPluginIsAsked: the wrapped store does not wait for a plugin.
func TestNothingIsLentWhileAPluginIsAsked(t *testing.T) {
	inner := &lender{Store: storagetest.OpenMemory(t), fakePlugin: newFakePlugin()}
	opts := encryption.Options{}.WithPlugin(inner)
	create(t, wrap(t, inner, document(kmsProvider), opts), secretKey, "confidential")
	create(t, inner, "/registry/pods/default/one", "plain")
	later := wrap(t, inner, document(kmsProvider), opts) // it does not know the seed
	for prefix, want := range map[string]string{"/registry/secrets/": "confidential", "/registry/pods/": "plain"} {
		page, err := later.List(t.Context(), prefix, storage.ListOptions{Borrow: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(page.Items[0].Value); got != want || page.Release != nil {
			t.Errorf("%s: %q, lent: %v, want %q", prefix, got, page.Release != nil, want)
		}
	}
	if inner.decrypts == 0 || inner.during.Load() != 0 || inner.lent.Load() != 2 || inner.loans.Load() != 0 {
		t.Errorf("the plugin was asked %d times, during loans %d times; %d loans, %d of them still",
			inner.decrypts, inner.during.Load(), inner.lent.Load(), inner.loans.Load())
	}
}
