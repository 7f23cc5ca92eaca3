package etcd

import (
	"context"
	"math"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Keys that expire at about the same time share a lease: one lease for each key
// would double the writes.
const (
	// A key lives longer than its ttl by up to a leaseSlackth of it, at least
	// minSlack and at most maxSlack.
	leaseSlack = 10
	minSlack   = time.Second
	maxSlack   = time.Minute
	// keysPerLease bounds how many keys etcd deletes in one revision.
	keysPerLease = 1000
	// maxLease keeps absurd durations within what etcd accepts.
	maxLease = 9_000_000_000 * time.Second
)

// leases finds a lease for a ttl among those granted before, or grants one.
type leases struct {
	client *clientv3.Client
	// granting is held by the call that grants. A channel, because waiting
	// for it must end with the context.
	granting chan struct{}

	mu   sync.Mutex
	open []lease // a few: those of the last minutes
}

type lease struct {
	id      clientv3.LeaseID
	expires time.Time // at the earliest, by this process's monotonic clock
	keys    int       // that were given this lease
}

func newLeases(client *clientv3.Client) *leases {
	return &leases{client: client, granting: make(chan struct{}, 1)}
}

// covering returns a lease that ends after ttl, but not long after.
func (l *leases) covering(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	slack := min(max(ttl/leaseSlack, minSlack), maxSlack)
	if id, ok := l.find(ttl, slack); ok {
		return id, nil
	}
	select {
	case l.granting <- struct{}{}:
		defer func() { <-l.granting }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if id, ok := l.find(ttl, slack); ok {
		return id, nil
	}
	asked := time.Now()
	length := min(ttl, maxLease-2*maxSlack) + slack
	seconds := int64(math.Ceil(length.Seconds()))
	granted, err := l.client.Grant(clientv3.WithRequireLeader(ctx), seconds)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, lease{granted.ID, asked.Add(time.Duration(seconds) * time.Second), 1})
	return granted.ID, nil
}

// find looks for a lease that ends between ttl and ttl+slack from now, and
// drops those that have ended. The rounding up to seconds may exceed slack by
// one: such a lease is simply found a little later.
func (l *leases) find(ttl, slack time.Duration) (clientv3.LeaseID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	kept := l.open[:0]
	var found clientv3.LeaseID
	for _, x := range l.open {
		left := x.expires.Sub(now)
		if left <= 0 || x.keys >= keysPerLease {
			continue
		}
		if found == 0 && left >= ttl && left <= ttl+slack {
			found = x.id
			x.keys++
		}
		kept = append(kept, x)
	}
	l.open = kept
	return found, found != 0
}

// forget drops a lease that etcd no longer has.
func (l *leases) forget(id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range l.open {
		if x.id == id {
			l.open = append(l.open[:i], l.open[i+1:]...)
			return
		}
	}
}
