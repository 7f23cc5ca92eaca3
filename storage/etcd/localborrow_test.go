package etcd_test

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

// borrowed lists keys and values, as they are lent or as they are copied.
func borrowed(t *testing.T, store storage.Store, opts storage.ListOptions) []string {
	t.Helper()
	page, err := store.List(t.Context(), "/t/", opts)
	if err != nil {
		t.Fatal(err)
	}
	if page.Release != nil {
		defer page.Release()
	}
	if lent := page.Release != nil; lent != opts.Borrow {
		t.Errorf("%+v: lent: %v", opts, lent)
	}
	var got []string
	for _, item := range page.Items {
		got = append(got, fmt.Sprintf("%s=%s@%d, since %d, of %d", item.Key, item.Value, item.Modified, item.Created, page.Revision))
	}
	return got
}

// TestTransactionsAreLent: another client has changed several keys at one revision, and
// deleted some; the database has them under that revision, with numbers.
func TestTransactionsAreLent(t *testing.T) {
	server := start(t, etcd.EmbedConfig{ListenClientURL: anyPort})
	client := otherClient(t, server)
	put := func(key, value string) clientv3.Op { return clientv3.OpPut("/t/"+key, value) }
	var revisions []storage.Revision
	for _, ops := range [][]clientv3.Op{
		{put("a", "1"), put("b", "2"), put("c", ""), put("d", "4")},
		{clientv3.OpDelete("/t/b"), put("d", "5"), put("a", "6")},
		{put("e", "7")},
	} {
		response, err := client.Txn(t.Context()).Then(ops...).Commit()
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, storage.Revision(response.Header.Revision))
	}
	for _, at := range append(revisions, 0) {
		want := borrowed(t, server, storage.ListOptions{At: at})
		if got := borrowed(t, server, storage.ListOptions{At: at, Borrow: true}); !slices.Equal(got, want) || len(want) < 3 {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
}

// TestLoansAreConsistent: what is lent is one state of the store, also while others write,
// and compact all earlier ones.
func TestLoansAreConsistent(t *testing.T) {
	store := start(t, etcd.EmbedConfig{})
	const keys, rounds = 20, 40
	var last [keys]storage.Revision
	for k := range keys {
		revision, err := store.Create(t.Context(), fmt.Sprintf("/t/%02d", k), []byte("0"), 0)
		if err != nil {
			t.Fatal(err)
		}
		last[k] = revision
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		for round := range rounds {
			for k := range keys {
				revision, err := store.Update(t.Context(), fmt.Sprintf("/t/%02d", k), fmt.Appendf(nil, "%d", round+1), last[k], 0)
				if err != nil {
					t.Error(err)
					return
				}
				last[k] = revision
			}
			if err := store.Compact(t.Context(), last[keys-1]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for round := 0; round < rounds; {
		page, err := store.List(t.Context(), "/t/", storage.ListOptions{Borrow: true})
		if err != nil {
			t.Fatal(err)
		}
		// The keys are written in their order: the first ones may be one round ahead.
		var values []string
		for _, item := range page.Items {
			values = append(values, string(item.Value))
		}
		page.Release()
		first, end := values[0], len(values)
		if ahead := slices.IndexFunc(values, func(value string) bool { return value != first }); ahead >= 0 {
			end = ahead
		}
		if _, err := fmt.Sscan(first, &round); err != nil || len(values) != keys {
			t.Fatalf("%q at %d: %v", values, page.Revision, err)
		}
		for _, value := range values[end:] {
			if value != fmt.Sprint(round-1) {
				t.Fatalf("%q at %d", values, page.Revision)
			}
		}
		if t.Failed() {
			break
		}
	}
}

// TestLoansBesideDefragmentations: a defragmentation waits for the loans that are open, and
// lists wait for the end of a defragmentation: neither waits for the other for ever.
func TestLoansBesideDefragmentations(t *testing.T) {
	const lists, defragmentations = 4, 40
	store := start(t, etcd.EmbedConfig{})
	if _, err := store.Create(t.Context(), "/t/a", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(3*time.Minute, func() {
		debug.SetTraceback("all")
		panic("lists and defragmentations wait for each other") // the store could not be closed either
	})
	defer stuck.Stop()
	var ended atomic.Bool
	var listing sync.WaitGroup
	for range lists {
		listing.Go(func() {
			for !ended.Load() {
				page, err := store.List(t.Context(), "/t/", storage.ListOptions{Borrow: true})
				if err != nil {
					t.Error(err)
					return
				}
				if value := string(page.Items[0].Value); value != "1" {
					t.Errorf("the value is %q", value)
				}
				page.Release()
			}
		})
	}
	for range defragmentations {
		if _, err := store.Defragment(t.Context()); err != nil {
			t.Error(err)
			break
		}
	}
	ended.Store(true)
	listing.Wait()
}
