package storagetest

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/storage"
)

var lifetimeCases = []testCase{
	{"CancelledCallsFail", lifetimeCancelledCalls},
	{"CancelEndsStream", lifetimeCancelStream},
	{"DeadlineEndsStream", lifetimeDeadlineStream},
	{"CancelledWatchFails", lifetimeCancelledWatch},
	{"CloseEndsStreams", lifetimeCloseStreams},
	{"ClosedStoreRefuses", lifetimeClosed},
}

func lifetimeCancelledCalls(s *session) {
	rev := s.create("/a", "1")
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	for name, err := range s.everyCall(ctx, rev) {
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s with a cancelled context: %v, want %v", name, err, context.Canceled)
		}
	}
}

func lifetimeCancelStream(s *session) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	start := s.current()
	stream, err := s.Watch(ctx, "/", start)
	if err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := stream.Next()
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			s.Fatalf("Next after cancel: %v, want %v", err, context.Canceled)
		}
	case <-s.ctx.Done():
		s.Fatal("Next did not return after its context was cancelled")
	}
	if _, err := stream.Next(); !errors.Is(err, context.Canceled) {
		s.Fatalf("Next again: %v, want %v", err, context.Canceled)
	}
}

func lifetimeDeadlineStream(s *session) {
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Millisecond) //passes: the stream ends by it
	defer cancel()
	start := s.current()
	stream, err := s.Watch(ctx, "/", start)
	if err == nil {
		f := &follower{session: s, stream: stream, prefix: "/", reached: start}
		f.expectEnd(context.DeadlineExceeded)
		return
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("Watch: %v, want a stream or %v", err, context.DeadlineExceeded)
	}
}

func lifetimeCancelledWatch(s *session) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	stream, err := s.Watch(ctx, "/", 0)
	if err == nil {
		_, err = stream.Next()
	}
	if !errors.Is(err, context.Canceled) {
		s.Fatalf("Watch with a cancelled context: %v, want %v", err, context.Canceled)
	}
}

func lifetimeCloseStreams(s *session) {
	start := s.current()
	ended := make(chan error, 3)
	for range cap(ended) {
		f := s.watch("/", start)
		go func() {
			for {
				if _, err := f.stream.Next(); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	s.create("/a", "1")
	if err := s.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	for range cap(ended) {
		select {
		case err := <-ended:
			if !errors.Is(err, storage.ErrClosed) {
				s.Errorf("Next after Close: %v, want %v", err, storage.ErrClosed)
			}
		case <-s.ctx.Done():
			s.Fatal("a stream did not end when the store was closed")
		}
	}
}

func lifetimeClosed(s *session) {
	rev := s.create("/a", "1")
	if err := s.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	for name, err := range s.everyCall(s.ctx, rev) {
		if !errors.Is(err, storage.ErrClosed) {
			s.Errorf("%s of a closed store: %v, want %v", name, err, storage.ErrClosed)
		}
	}
	stream, err := s.Watch(s.ctx, "/", rev)
	if err == nil {
		_, err = stream.Next()
	}
	if !errors.Is(err, storage.ErrClosed) {
		s.Errorf("Watch of a closed store: %v, want %v", err, storage.ErrClosed)
	}
	if err := s.Close(); err != nil {
		s.Errorf("Close again: %v", err)
	}
}

// everyCall makes each call of the contract but Watch and returns its error.
// rev is the revision of /a.
func (s *session) everyCall(ctx context.Context, rev storage.Revision) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = s.Get(ctx, "/a", 0)
	_, errs["List"] = s.List(ctx, "/", storage.ListOptions{})
	_, errs["Current"] = s.Current(ctx)
	_, errs["Create"] = s.Create(ctx, "/b", []byte("x"), 0)
	_, errs["Update"] = s.Update(ctx, "/a", []byte("x"), rev, 0)
	_, errs["Delete"] = s.Delete(ctx, "/a", rev)
	errs["Compact"] = s.Compact(ctx, rev)
	return errs
}
