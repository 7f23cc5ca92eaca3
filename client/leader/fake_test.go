package leader

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// store is an API server's Lease: guarded writes, one at a time. It stands in
// for a server because faults have to happen at chosen moments of a bubble's
// clock.
type store struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
}

var resource = coordinationv1.Resource("leases")

func (s *store) get() (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(resource, "it")
	}
	return s.lease.DeepCopy(), nil
}

func (s *store) put(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lease == nil && lease.ResourceVersion != "":
		return nil, apierrors.NewNotFound(resource, "it")
	case s.lease != nil && lease.ResourceVersion == "":
		return nil, apierrors.NewAlreadyExists(resource, "it")
	case s.lease != nil && s.lease.ResourceVersion != lease.ResourceVersion:
		return nil, apierrors.NewConflict(resource, "it", errors.New("another client was faster"))
	}
	s.version++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.version)
	return s.lease.DeepCopy(), nil
}

var errCut = errors.New("the connection was cut")

// line is one candidate's way to the store. Each request asks trouble what
// happens to it.
type line struct {
	*store
	trouble func() trouble
}

// trouble of one request: how long it takes to arrive and its answer to come
// back, and whether one of the two is lost.
type trouble struct {
	there, back         time.Duration
	lostThere, lostBack bool
	hangs               bool // until its context ends
}

func (l line) request(ctx context.Context, do func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	var t trouble
	if l.trouble != nil {
		t = l.trouble()
	}
	if t.hangs {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if err := wait(ctx, t.there); err != nil || t.lostThere {
		return nil, errors.Join(err, errCut)
	}
	answer, err := do()
	if cut := wait(ctx, t.back); cut != nil || t.lostBack {
		return nil, errors.Join(cut, errCut)
	}
	return answer, err
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		// A timer that is due when a bubble selects on it can end the process
		// under the race detector (in Go 1.26's runtime.maybeRunChan).
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l line) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.request(ctx, l.get)
}

func (l line) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.request(ctx, func() (*coordinationv1.Lease, error) { return l.put(lease) })
}

func (l line) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.request(ctx, func() (*coordinationv1.Lease, error) { return l.put(lease) })
}

// weather makes trouble that lasts: times in which all is well, requests are
// slow, are lost on either way, or hang.
func weather(random *rand.Rand) func() trouble {
	var until time.Time
	var kind int
	return func() trouble {
		if now := time.Now(); now.After(until) {
			kind = random.IntN(6)
			until = now.Add(time.Duration(random.Int64N(int64(time.Minute))))
		}
		t := trouble{there: time.Duration(random.IntN(50)) * time.Millisecond, back: time.Duration(random.IntN(50)) * time.Millisecond}
		switch kind {
		case 0:
			t.there = time.Duration(random.Int64N(int64(12 * time.Second)))
		case 1:
			t.back = time.Duration(random.Int64N(int64(12 * time.Second)))
		case 2:
			t.lostThere = random.IntN(4) > 0
		case 3:
			t.lostBack = random.IntN(4) > 0
		case 4:
			t.hangs = true
		}
		return t
	}
}
