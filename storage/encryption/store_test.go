package encryption_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/encryption"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/memory"
	"github.com/levelwire/levelwire/storage/storagetest"
)

// TestContract: an encrypted store is a store.
func TestContract(t *testing.T) {
	for _, provider := range []string{"aesgcm", "secretbox"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			storagetest.Run(t, func(t *testing.T) storage.Store {
				return wrap(t, storagetest.OpenMemory(t), document(keyed(provider, "one=a")), encryption.Options{Resource: everything})
			})
		})
	}
	t.Run("kms", func(t *testing.T) {
		t.Parallel() // it waits more than it computes
		storagetest.Run(t, func(t *testing.T) storage.Store {
			return wrap(t, storagetest.OpenMemory(t), document(kmsProvider), encryption.Options{Resource: everything}.WithPlugin(newFakePlugin()))
		})
	})
}

// TestContractOverEtcd: the same for the embedded etcd, and for one that is reached over
// the network.
func TestContractOverEtcd(t *testing.T) {
	embed := func(t *testing.T, config etcd.EmbedConfig) *etcd.Store {
		t.Helper()
		config.Dir = t.TempDir()
		store, err := etcd.Embed(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel() // it waits more than it computes
		storagetest.Run(t, func(t *testing.T) storage.Store {
			return wrap(t, embed(t, etcd.EmbedConfig{}), document(keyed("aesgcm", "one=a")), encryption.Options{Resource: everything})
		})
	})
	t.Run("external", func(t *testing.T) {
		t.Parallel() // it waits more than it computes
		storagetest.Run(t, func(t *testing.T) storage.Store {
			member := embed(t, etcd.EmbedConfig{ListenClientURL: "http://127.0.0.1:0"})
			store, err := etcd.Open(t.Context(), etcd.Config{Endpoints: []string{member.ClientURL()}})
			if err != nil {
				t.Fatal(err)
			}
			return wrap(t, store, document(keyed("secretbox", "one=a")), encryption.Options{Resource: everything})
		})
	})
}

// TestStoredForm: what is stored begins with the prefix and hides the value, and
// resources that are not named, and keys of none, are stored as they are.
func TestStoredForm(t *testing.T) {
	for _, provider := range []string{"aescbc", "aesgcm", "secretbox"} {
		inner := storagetest.OpenMemory(t)
		store := wrap(t, inner, document(keyed(provider, "one=a"), identity), encryption.Options{})
		create(t, store, secretKey, "confidential")
		create(t, store, "/parts/1", "confidential")
		for _, key := range []string{secretKey, "/parts/1"} {
			stored := get(t, inner, key).Value
			if !bytes.HasPrefix(stored, []byte("k8s:enc:"+provider+":v1:one:")) || bytes.Contains(stored, []byte("confidential")) {
				t.Errorf("%s: %s is stored as %q", provider, key, stored)
			}
			if item := get(t, store, key); string(item.Value) != "confidential" || item.Stale {
				t.Errorf("%s: %s is read as %q, stale %v", provider, key, item.Value, item.Stale)
			}
		}
		for _, key := range []string{"/registry/pods/default/one", "/levelwire/epoch"} {
			create(t, store, key, "public")
			if stored := get(t, inner, key).Value; string(stored) != "public" {
				t.Errorf("%s is stored as %q", key, stored)
			}
		}
	}
}

// TestWildcards: "*.*" is for resources that no other entry names.
func TestWildcards(t *testing.T) {
	inner := storagetest.OpenMemory(t)
	content := document(keyed("aesgcm", "one=a"), identity) + "  - resources: ['*.*']\n    providers:\n" + keyed("secretbox", "two=b")
	store := wrap(t, inner, content, encryption.Options{})
	for key, want := range map[string]string{secretKey: "k8s:enc:aesgcm:v1:one:", "/registry/pods/a": "k8s:enc:secretbox:v1:two:", "/parts/1": "k8s:enc:secretbox:v1:two:"} {
		create(t, store, key, "confidential")
		if is := storage.EncryptedBy(get(t, inner, key).Value); is != want {
			t.Errorf("%s is stored with %q, want %q", key, is, want)
		}
	}
}

// TestOperations: uses of keys are counted by resource, key and outcome, and those of values that
// the configuration does not name are not.
func TestOperations(t *testing.T) {
	inner := storagetest.OpenMemory(t)
	former := wrap(t, inner, document(keyed("aesgcm", "one=a")), encryption.Options{})
	create(t, former, secretKey, "confidential")
	create(t, former, "/registry/pods/default/one", "public")
	store := wrap(t, inner, document(keyed("secretbox", "two=b"), keyed("aesgcm", "one=a"), identity), encryption.Options{})
	create(t, store, "/registry/secrets/default/two", "confidential")
	create(t, inner, "/registry/secrets/default/plain", "plain")
	create(t, inner, "/registry/secrets/default/strange", "k8s:enc:aesgcm:v1:three:x")
	create(t, inner, "/registry/secrets/default/damaged", "k8s:enc:aesgcm:v1:one:x")
	for _, name := range []string{"one", "one", "two", "plain", "strange", "damaged"} {
		get(t, store, "/registry/secrets/default/"+name)
	}
	get(t, store, "/registry/pods/default/one")
	got := map[string]uint64{}
	store.Operations(func(o encryption.Operation, n uint64) {
		got[fmt.Sprintf("%s %v %s %s", o.Resource, o.ToStorage, o.Prefix, o.Status)] = n
	})
	want := map[string]uint64{
		"secrets false k8s:enc:aesgcm:v1:one: OK":               2,
		"secrets false k8s:enc:aesgcm:v1:one: unknown-non-grpc": 1,
		"secrets false k8s:enc:secretbox:v1:two: OK":            1,
		"secrets false  OK":                                     1,
		"secrets false unknown unknown-non-grpc":                1,
		"secrets true k8s:enc:secretbox:v1:two: OK":             1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRotation: the first key writes, all read, and what another than the first has
// written is stale.
func TestRotation(t *testing.T) {
	inner := storagetest.OpenMemory(t)
	var configs []string
	former := []string{}
	for _, k := range []string{"one=a", "two=b", "three=c"} {
		former = append([]string{k}, former...)
		configs = append(configs, document(keyed("aesgcm", former...), identity))
	}
	configs = append(configs, document(keyed("secretbox", "four=d"), keyed("aesgcm", former...), identity), document(identity, keyed("secretbox", "four=d"), keyed("aesgcm", former...)))
	create(t, inner, "/registry/secrets/plain", "plain")
	for i, content := range configs {
		store := wrap(t, inner, content, encryption.Options{})
		create(t, store, fmt.Sprintf("/registry/secrets/%d", i), fmt.Sprint("value ", i))
		page, err := store.List(t.Context(), "/registry/secrets/", storage.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for j, item := range page.Items {
			want, stale := fmt.Sprint("value ", j), j != i
			if j == i+1 {
				want, stale = "plain", i != len(configs)-1
			}
			if string(item.Value) != want || item.Stale != stale {
				t.Errorf("configuration %d reads %s as %q, stale %v", i, item.Key, item.Value, item.Stale)
			}
		}
	}
}

// TestUnreadable: a value that no key decrypts does not stop a list, a watch or a
// replay, and says why it cannot be read.
func TestUnreadable(t *testing.T) {
	inner := storagetest.OpenMemory(t)
	right := wrap(t, inner, document(keyed("aesgcm", "one=a")), encryption.Options{})
	create(t, right, secretKey, "confidential")
	for _, c := range []struct{ content, because string }{
		{document(keyed("aesgcm", "one=b")), `"k8s:enc:aesgcm:v1:one:", but the key "one" of provider aesgcm`},
		{document(keyed("aesgcm", "two=a")), `no provider aesgcm with the key "one"`},
		{document(keyed("secretbox", "one=a")), `no provider aesgcm with the key "one"`},
		{document(identity), `no provider aesgcm with the key "one"`},
	} {
		wrong := wrap(t, inner, c.content, encryption.Options{})
		expectUnreadable(t, get(t, wrong, secretKey).Value, c.because, false)
		page, err := wrong.List(t.Context(), "/registry/", storage.ListOptions{})
		if err != nil || len(page.Items) != 1 {
			t.Fatal(page, err)
		}
		expectUnreadable(t, page.Items[0].Value, c.because, false)
		stream, err := wrong.Watch(t.Context(), "/registry/", 0)
		if err != nil {
			t.Fatal(err)
		}
		batch, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		expectUnreadable(t, batch.Events[0].Value, c.because, false)
		if err := wrong.Replay(t.Context(), "/registry/", 0, batch.Revision, func(events []storage.Event) error {
			expectUnreadable(t, events[0].Value, c.because, false)
			return nil
		}); err != nil {
			t.Error(err)
		}
		_, err = wrong.Create(t.Context(), secretKey, []byte("x"), 0)
		var conflict *storage.ConflictError
		if !errors.As(err, &conflict) {
			t.Fatal(err)
		}
		expectUnreadable(t, conflict.Current.Value, c.because, false)
	}
	// Without a configuration, the value itself says so.
	expectUnreadable(t, get(t, inner, secretKey).Value, `"k8s:enc:aesgcm:v1:one:", and the server has no --encryption-provider-config`, false)
}

// TestPlainValueIsRefused unless the provider identity is named: else one that can write
// to etcd could replace a secret.
func TestPlainValueIsRefused(t *testing.T) {
	inner := storagetest.OpenMemory(t)
	create(t, inner, secretKey, "planted")
	expectUnreadable(t, get(t, wrap(t, inner, document(keyed("aesgcm", "one=a")), encryption.Options{}), secretKey).Value, "no provider identity", false)
}

// TestMovedValueIsRefused: a value is bound to its key in the store. It is the value's
// fault then, not that of the configuration.
func TestMovedValueIsRefused(t *testing.T) {
	inner := storagetest.OpenMemory(t)
	store := wrap(t, inner, document(keyed("aesgcm", "one=a")), encryption.Options{})
	create(t, store, secretKey, "confidential")
	get(t, store, secretKey)
	create(t, inner, "/registry/secrets/mine/copy", string(get(t, inner, secretKey).Value))
	expectUnreadable(t, get(t, store, "/registry/secrets/mine/copy").Value, "damaged or was moved", true)
}

func expectUnreadable(t *testing.T, value []byte, because string, damaged bool) {
	t.Helper()
	var reason *storage.UnreadableError
	if err := storage.CheckReadable(value); !errors.As(err, &reason) || !strings.Contains(err.Error(), because) || reason.Damaged != damaged {
		t.Errorf("%q is unreadable because of %v, want %q", value, err, because)
	}
}

// TestLongListAndBatch are decrypted by several goroutines, in order.
func TestLongListAndBatch(t *testing.T) {
	store := wrap(t, storagetest.OpenMemory(t), document(keyed("aesgcm", "one=a")), encryption.Options{})
	const n = 1000
	for i := range n {
		create(t, store, fmt.Sprintf("/registry/secrets/%04d", i), fmt.Sprint(i))
	}
	page, err := store.List(t.Context(), "/registry/", storage.ListOptions{})
	if err != nil || len(page.Items) != n {
		t.Fatal(len(page.Items), err)
	}
	for i, item := range page.Items {
		if string(item.Value) != fmt.Sprint(i) {
			t.Fatalf("item %d is %q", i, item.Value)
		}
	}
	at := 0
	if err := store.Replay(t.Context(), "/registry/", 0, page.Revision, func(events []storage.Event) error {
		for _, e := range events {
			if string(e.Value) != fmt.Sprint(at) {
				return fmt.Errorf("event %d is %q", at, e.Value)
			}
			at++
		}
		return nil
	}); err != nil || at != n {
		t.Fatal(at, err)
	}
}

// TestInnermost: what looks for abilities of an engine finds it below the encryption.
func TestInnermost(t *testing.T) {
	inner := storagetest.OpenMemory(t)
	if storage.Innermost(wrap(t, inner, document(identity), encryption.Options{})) != storage.Store(inner) {
		t.Error("the engine was not found")
	}
}

// BenchmarkList is a page of 1,000 secrets of 1 KiB.
func BenchmarkList(b *testing.B) {
	for name, content := range map[string]string{
		"none": "", "aesgcm": document(keyed("aesgcm", "one=a")), "secretbox": document(keyed("secretbox", "one=a")), "aescbc": document(keyed("aescbc", "one=a")), "kms": document(kmsProvider),
	} {
		b.Run(name, func(b *testing.B) {
			inner, err := memory.Open(memory.Options{})
			if err != nil {
				b.Fatal(err)
			}
			var store storage.Store = inner
			if content != "" {
				store = wrap(b, inner, content, encryption.Options{}.WithPlugin(newFakePlugin()))
			}
			b.Cleanup(func() { _ = store.Close() })
			for i := range 1000 {
				create(b, store, fmt.Sprintf("/registry/secrets/%04d", i), strings.Repeat("x", 1024))
			}
			b.SetBytes(1000 << 10)
			for b.Loop() {
				if _, err := store.List(b.Context(), "/registry/secrets/", storage.ListOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
