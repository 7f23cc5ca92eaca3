package registry_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// answering is a store that answers an update with an error once it is set.
type answering struct {
	storage.Store
	err error
}

func (s *answering) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	if err := s.err; err != nil && strings.HasPrefix(key, "/registry/configmaps/") {
		s.err = nil
		return 0, err
	}
	return s.Store.Update(ctx, key, value, expect, ttl)
}

// TestStoreHook: it sees each request to the store with what is stored, and learns how that ended.
func TestStoreHook(t *testing.T) {
	type call struct {
		name    string
		outcome registry.Outcome
		stored  string
	}
	var calls []call
	store := &answering{}
	f := newFixture(t, func(c *registry.Config) { store.Store, c.Store = c.Store, store })
	f.BeforeStore(f.of(t, "configmaps").Resource(), func(_ context.Context, namespace, name string, stored []byte) func(registry.Outcome) {
		return func(outcome registry.Outcome) {
			calls = append(calls, call{namespace + "/" + name, outcome, string(stored)})
		}
	})
	expect := func(what string, outcomes ...registry.Outcome) {
		t.Helper()
		var got []registry.Outcome
		for _, c := range calls {
			if c.name != "default/c" {
				t.Errorf("%s: the hook sees %s", what, c.name)
			}
			got = append(got, c.outcome)
		}
		if !slices.Equal(got, outcomes) {
			t.Errorf("%s: outcomes %v, want %v", what, got, outcomes)
		}
	}
	f.create(t, "configmaps", configMap("c", "1"))
	expect("create", registry.Committed)
	kv, err := f.store.Get(t.Context(), "/registry/configmaps/default/c", 0)
	if err != nil || string(kv.Value) != calls[0].stored {
		t.Errorf("the hook sees %s, the store has %s (%v)", calls[0].stored, kv.Value, err)
	}
	f.create(t, "secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	update := func(value string, dryRun bool) error {
		calls = nil
		_, err := f.of(t, "configmaps").Update(t.Context(), "default", "c", func(resource.Object) (resource.Object, error) {
			return configMap("c", value), nil
		}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{DryRun: dryRun}})
		return err
	}
	for _, step := range []struct {
		what, value string
		dryRun      bool
		answer      error
		want        []registry.Outcome
	}{
		{"dry run", "2", true, nil, nil},
		{"too large", "3", false, storage.ErrTooLarge, []registry.Outcome{registry.Refused, registry.Committed}}, // without managedFields then
		{"no answer", "4", false, errors.New("gone"), []registry.Outcome{registry.Unknown}},
		{"no change", "3", false, nil, nil},
	} {
		store.err = step.answer
		err := update(step.value, step.dryRun)
		if (err != nil) != slices.Contains(step.want, registry.Unknown) {
			t.Errorf("%s: %v", step.what, err)
		}
		expect(step.what, step.want...)
		if step.what == "too large" && (!strings.Contains(calls[0].stored, "managedFields") || strings.Contains(calls[1].stored, "managedFields")) {
			t.Errorf("%s: stored %s, then %s", step.what, calls[0].stored, calls[1].stored)
		}
	}
	calls = nil
	if _, err := f.of(t, "configmaps").Delete(t.Context(), "default", "c", nil); err != nil {
		t.Error(err)
	}
	expect("delete")
}
