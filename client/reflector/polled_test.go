package reflector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// polledServer refuses watches. Its lists take a second and are of the version at which they
// began, or, unless they are asked for the most recent one, of an older version.
type polledServer struct {
	mu        sync.Mutex
	version   int
	versioned bool
	watches   bool // allowed
	fails     bool
	begun     int // lists
}

func (s *polledServer) set(change func(s *polledServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *polledServer) lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

func (s *polledServer) List(_ context.Context, opts metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	s.mu.Lock()
	s.begun++
	version := s.version
	s.mu.Unlock()
	if opts.ResourceVersion != "" {
		version = 5
	}
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return nil, errors.New("cut")
	}
	list := &client.List[*corev1.ConfigMap]{}
	if s.versioned {
		list.ResourceVersion = strconv.Itoa(version)
	}
	return list, nil
}

func (s *polledServer) Watch(ctx context.Context, _ metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches {
		events := make(chan configEvent, 1)
		events <- eventAt("BOOKMARK", strconv.Itoa(s.version))
		return fedStream{ctx, events}, nil
	}
	return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}}
}

// TestProgressOfPolls: where watches are refused, a list that began after the question
// answers it, and no other.
func TestProgressOfPolls(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(s *polledServer)
		during  func(s *polledServer) // what happens after the question
		wanted  string
		err     error
		lists   int // that begin after the question
	}{
		"nothing has changed":              {wanted: "9", lists: 1},
		"the server's versions are others": {wanted: "1000", err: ErrOtherVersions, lists: 1},
		"lists without a version":          {prepare: func(s *polledServer) { s.versioned = false }, wanted: "9", err: ErrOtherVersions},
		"a list fails": {during: func(s *polledServer) {
			s.fails = true
			time.AfterFunc(70*time.Second, func() { s.set(func(s *polledServer) { s.fails = false }) })
		}, wanted: "9", lists: 3},
		"watches are allowed again": {during: func(s *polledServer) { s.watches = true }, wanted: "9"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &polledServer{version: 5, versioned: true}
				if test.prepare != nil {
					test.prepare(s)
				}
				r, err := New[*corev1.ConfigMap](s, noStore{}, Options{PagedList: true, Rand: func() float64 { return 0.99 }})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ran := make(chan error, 1)
				go func() { ran <- r.Run(ctx) }()
				time.Sleep(10 * time.Minute)
				for n := s.lists(); s.lists() == n; { // a list is under way
					time.Sleep(100 * time.Millisecond)
				}
				before := s.lists()
				s.set(func(s *polledServer) {
					s.version = 9
					if test.during != nil {
						test.during(s)
					}
				})
				asked := time.Now()
				err = r.RequestProgress(t.Context(), test.wanted)
				if !errors.Is(err, test.err) || s.lists()-before != test.lists {
					t.Errorf("%v after %v and %d lists, at %q", err, time.Since(asked), s.lists()-before, r.LastSyncResourceVersion())
				}
				if test.err == nil && r.LastSyncResourceVersion() != "9" {
					t.Errorf("the store is at %s", r.LastSyncResourceVersion())
				}
				if waiting(r) > 0 {
					t.Errorf("%d questions are left", waiting(r))
				}
				cancel()
				if err := <-ran; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A question that is given up leaves nothing behind.
func TestProgressOfPollsThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &polledServer{version: 5, versioned: true}
		r, err := New[*corev1.ConfigMap](s, noStore{}, Options{PagedList: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- r.Run(ctx) }()
		time.Sleep(time.Minute)
		s.set(func(s *polledServer) { s.fails = true })
		for range 3 {
			short, stop := context.WithTimeout(t.Context(), time.Minute)
			if err := r.RequestProgress(short, "9"); !errors.Is(err, ErrNoProgress) || !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			stop()
		}
		if n := waiting(r); n > 0 {
			t.Errorf("%d questions are left", n)
		}
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// TestProgressBesidePolls: the short watch of RequestProgress is none of the long polls that
// stand for streams, whose answers come too late.
func TestProgressBesidePolls(t *testing.T) {
	opts := Options{PollTimeout: 30 * time.Second}
	synctest.Test(t, func(t *testing.T) {
		s := &twoWatches{lists: []string{"5"}, followed: make(chan configEvent), short: []configEvent{eventAt("BOOKMARK", "9")}}
		r, err := New[*corev1.ConfigMap](s, noStore{}, opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- r.Run(ctx) }()
		synctest.Wait()
		if err := r.RequestProgress(t.Context(), "9"); err != nil || r.LastSyncResourceVersion() != "9" {
			t.Errorf("%v, at %s", err, r.LastSyncResourceVersion())
		}
		if got := fmt.Sprint(len(s.asked)); got != "1" {
			t.Errorf("%s short watches", got)
		}
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// waiting is how many questions have no answer.
func waiting(r *Reflector[*corev1.ConfigMap]) int {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	return len(r.progress.waiting)
}
