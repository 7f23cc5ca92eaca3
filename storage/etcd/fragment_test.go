package etcd

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/levelwire/levelwire/storage"
)

// FuzzFragments cuts a history into responses and fragments at random,
// repeats a part of it as a resumed watch may, and expects each event once, in
// order, with all events of a revision in one batch.
func FuzzFragments(f *testing.F) {
	f.Add([]byte{1, 1, 1}, uint8(0))
	f.Add([]byte{3, 0x83, 0x45, 2}, uint8(2))
	f.Add([]byte{0x81, 0x81, 0x41, 0x87, 9, 0xc2}, uint8(1))
	f.Fuzz(func(t *testing.T, script []byte, after uint8) {
		st := &stream{created: true}
		st.reached.Store(int64(after))
		var want, got []string
		revision := int64(1)
		var pending []*mvccpb.Event
		send := func(fragment bool) {
			resp := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: revision + 100}, Events: pending, Fragment: fragment}
			if len(pending) == 0 {
				// Without events it would be a report of progress.
				resp.Header.Revision = 0
			}
			pending = nil
			batch, _, err := st.accept(resp)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch.Events {
				got = append(got, fmt.Sprint(e.Key, e.Revision))
				if e.Revision > batch.Revision {
					t.Fatalf("event of %d in a batch that reaches %d", e.Revision, batch.Revision)
				}
			}
		}
		fragmented := false
		for _, op := range script {
			// Low six bits: events of this revision. Bit 6: a fragment ends in
			// their middle. Bit 7: a response ends after them.
			count := int(op & 0x3f)
			for i := range count {
				key := fmt.Sprintf("%d/", i)
				pending = append(pending, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision}})
				if revision > int64(after) {
					want = append(want, fmt.Sprint(key, revision))
				}
				if op&0x40 != 0 && i == count/2 && i < count-1 {
					send(true)
					fragmented = true
				}
			}
			if op&0x80 != 0 {
				send(false)
				fragmented = false
			}
			revision++
		}
		if len(pending) > 0 || fragmented {
			send(false)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestFragmentsHoldBackTheLastRevision(t *testing.T) {
	event := func(key string, rev int64) *mvccpb.Event {
		return &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: rev}}
	}
	st := &stream{created: true}
	batch, news, err := st.accept(&pb.WatchResponse{Fragment: true, Events: []*mvccpb.Event{event("a", 1), event("b", 2)}})
	if err != nil || !news || batch.Revision != 1 || len(batch.Events) != 1 {
		t.Fatalf("first fragment: %+v, %v, %v; want revision 1 alone", batch, news, err)
	}
	batch, news, err = st.accept(&pb.WatchResponse{Events: []*mvccpb.Event{event("c", 2)}})
	if err != nil || !news || batch.Revision != 2 || len(batch.Events) != 2 {
		t.Fatalf("last fragment: %+v, %v, %v; want both events of revision 2", batch, news, err)
	}
}

func TestProgressNeverRunsAhead(t *testing.T) {
	st := &stream{}
	st.reached.Store(10)
	for _, test := range []struct {
		name string
		resp *pb.WatchResponse
		want storage.Revision // 0: nothing to deliver
	}{
		{"report before the confirmation", &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 50}}, 0},
		{"created", &pb.WatchResponse{Created: true, Header: &pb.ResponseHeader{Revision: 50}}, 0},
		{"old report", &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 5}}, 0},
		{"catching up", &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 50}, Events: []*mvccpb.Event{{Kv: &mvccpb.KeyValue{ModRevision: 12}}}}, 12},
		{"report", &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 50}}, 50},
		{"same report", &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 50}}, 0},
	} {
		batch, news, err := st.accept(test.resp)
		if err != nil || batch.Revision != test.want || news != (test.want != 0) {
			t.Errorf("%s: %+v, %v, %v; want revision %d", test.name, batch, news, err, test.want)
		}
	}
}

func TestTranslate(t *testing.T) {
	for _, test := range []struct {
		err  error
		want error
	}{
		{rpctypes.ErrGRPCCompacted, storage.ErrCompacted},
		{rpctypes.ErrCompacted, storage.ErrCompacted},
		{rpctypes.ErrGRPCFutureRev, storage.ErrFutureRevision},
		{rpctypes.ErrGRPCRequestTooLarge, storage.ErrTooLarge},
		{status.Error(codes.ResourceExhausted, "trying to send message larger than max (3 vs. 2)"), storage.ErrTooLarge},
		{rpctypes.ErrGRPCNoSpace, storage.ErrUnavailable}, {rpctypes.ErrGRPCNoSpace, storage.ErrFull},
		{rpctypes.ErrGRPCNoLeader, storage.ErrUnavailable},
		{rpctypes.ErrGRPCTimeout, storage.ErrUnavailable},
		{rpctypes.ErrGRPCRequestTooManyRequests, storage.ErrUnavailable},
		{status.Error(codes.Unavailable, "connection refused"), storage.ErrUnavailable},
	} {
		if got := translate(test.err); !errors.Is(got, test.want) {
			t.Errorf("translate(%q) = %q, want %q", test.err, got, test.want)
		}
	}
	if got := translate(rpctypes.ErrGRPCPermissionDenied); errors.Is(got, storage.ErrUnavailable) {
		t.Errorf("a refusal became %q: waiting will not help", got)
	}
}

func TestCancelledWatchesPassOrNot(t *testing.T) {
	for reason, want := range map[string]bool{
		"":                                       true,
		rpctypes.ErrGRPCNoLeader.Error():         true,
		"etcdserver: no leader":                  true,
		rpctypes.ErrGRPCAuthOldRevision.Error():  true,
		rpctypes.ErrGRPCPermissionDenied.Error(): false,
		"mvcc: watcher range is empty":           false,
	} {
		if got := isTransient(codeOf(cancelled(reason))); got != want {
			t.Errorf("cancelled for %q: resumed %v, want %v", reason, got, want)
		}
	}
}
