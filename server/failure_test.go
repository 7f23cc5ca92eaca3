package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// failingStore fails for good when its channel is closed, as embedded storage does.
type failingStore struct {
	storage.Store
	failed chan struct{}
}

var errDisk = errors.New("the disk has failed")

func (s failingStore) Failed() <-chan struct{} { return s.failed }
func (s failingStore) Failure() error          { return errDisk }

// TestFailedStorageEndsTheServer, with the reason; parts of the server that wait for the
// storage do not keep it.
func TestFailedStorageEndsTheServer(t *testing.T) {
	released := make(chan struct{})
	defer close(released)
	for name, of := range map[string]func(failingStore) storage.Store{
		"its calls end":  func(s failingStore) storage.Store { return s },
		"its calls hang": func(s failingStore) storage.Store { return hangingStore{s, released} },
	} {
		t.Run(name, func(t *testing.T) {
			store, err := memory.Open(memory.Options{})
			if err != nil {
				t.Fatal(err)
			}
			failing := failingStore{store, make(chan struct{})}
			s := start(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return of(failing), nil }})
			close(failing.failed)
			select {
			case err := <-s.ended:
				if !errors.Is(err, errDisk) {
					t.Errorf("the server ended with %v", err)
				}
				s.ended <- nil // for stop
			case <-deadline(t).Done():
				t.Error("the server goes on")
			}
		})
	}
}

// hangingStore is one whose streams, once it has failed, wait for the locks of the part that
// has failed.
type hangingStore struct {
	failingStore
	released chan struct{}
}

type hangingStream struct {
	storage.Stream
	store hangingStore
}

func (s hangingStore) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	stream, err := s.failingStore.Watch(ctx, prefix, after)
	return hangingStream{stream, s}, err
}

func (s hangingStream) Next() (storage.Batch, error) {
	batch, err := s.Stream.Next()
	select {
	case <-s.store.failed:
		<-s.store.released
	default:
	}
	return batch, err
}
