package etcd_test

import (
	"bytes"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

// otherClient is a client of the same etcd that does not know the contract.
func otherClient(t *testing.T, server *etcd.Store) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.ClientURL()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// TestTransactionsStayTogether lets another client change many large keys in one
// transaction, more than one message holds, and expects one batch.
func TestTransactionsStayTogether(t *testing.T) {
	server := start(t, etcd.EmbedConfig{ListenClientURL: anyPort, MaxValueBytes: 2 << 20})
	client := otherClient(t, server)
	external := connect(t, server)
	value := string(bytes.Repeat([]byte("x"), 200<<10))
	var streams []storage.Stream
	for _, store := range []storage.Store{server, external} {
		// One reads as it happens, one from the past.
		stream, err := store.Watch(t.Context(), "/t/", 0)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	const transactions, keys = 20, 8
	var last storage.Revision
	for n := range transactions {
		var ops []clientv3.Op
		for k := range keys {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("/t/%d/%d", n, k), value))
		}
		resp, err := client.Txn(t.Context()).Then(ops...).Commit()
		if err != nil {
			t.Fatal(err)
		}
		last = storage.Revision(resp.Header.Revision)
	}
	late, err := external.Watch(t.Context(), "/t/", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, stream := range append(streams, late) {
		events := 0
		for reached := storage.Revision(0); reached < last; {
			batch, err := stream.Next()
			if err != nil {
				t.Fatal(err)
			}
			perRevision := map[storage.Revision]int{}
			for _, e := range batch.Events {
				perRevision[e.Revision]++
				events++
			}
			for rev, count := range perRevision {
				if count != keys {
					t.Errorf("stream %d: a batch holds %d of %d events of revision %d", i, count, keys, rev)
				}
			}
			reached = batch.Revision
		}
		if events != transactions*keys {
			t.Errorf("stream %d delivered %d events, want %d", i, events, transactions*keys)
		}
	}
}

// TestLeasesAreShared counts leases for many keys of one lifetime, and revokes
// one to see that the next write gets another.
func TestLeasesAreShared(t *testing.T) {
	const ttl = 3600e9
	server := start(t, etcd.EmbedConfig{ListenClientURL: anyPort})
	client := otherClient(t, server)
	external := connect(t, server)
	for i := range 1500 {
		if _, err := external.Create(t.Context(), fmt.Sprintf("/e/%d", i), nil, ttl); err != nil {
			t.Fatal(err)
		}
	}
	granted, err := client.Leases(t.Context())
	if err != nil || len(granted.Leases) != 2 {
		t.Fatalf("1500 keys have %d leases, %v; want two, of 1000 keys at most", len(granted.Leases), err)
	}
	for _, lease := range granted.Leases {
		if _, err := client.Revoke(t.Context(), lease.ID); err != nil {
			t.Fatal(err)
		}
	}
	rev, err := external.Create(t.Context(), "/e/next", nil, ttl)
	if err != nil {
		t.Fatalf("a write after its lease was revoked: %v", err)
	}
	if _, err := external.Update(t.Context(), "/e/next", nil, rev, ttl); err != nil {
		t.Fatal(err)
	}
}
