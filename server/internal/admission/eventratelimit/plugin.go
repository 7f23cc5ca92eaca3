package eventratelimit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/lru"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// Plugin limits events. It is safe for concurrent use.
type Plugin struct {
	limiters []*limiter
	now      func() time.Time
}

// New returns the plugin. now is the clock of the rates; nil: time.Now.
func New(config *Config, now func() time.Time) *Plugin {
	if now == nil {
		now = time.Now
	}
	p := &Plugin{now: now}
	for _, limit := range config.Limits {
		size := int(limit.CacheSize)
		switch {
		case limit.Type == Server:
			size = 1
		case size == 0:
			size = defaultCacheSize
		}
		p.limiters = append(p.limiters, &limiter{limit: limit, buckets: lru.New(size)})
	}
	return p
}

var (
	coreEvents = schema.GroupResource{Resource: "events"}
	newEvents  = schema.GroupResource{Group: eventsv1.GroupName, Resource: "events"}
)

// Validate refuses an event with 429 if a limit is reached. An event counts for all
// limits, whichever refuses it. Dry runs write nothing and do not count.
func (p *Plugin) Validate(ctx context.Context, q *registry.Request) error {
	if gr := q.Resource.GroupResource(); gr != coreEvents && gr != newEvents {
		return nil
	}
	if q.DryRun || q.Object == nil || q.Operation != registry.Create && q.Operation != registry.Update {
		return nil
	}
	now := p.now()
	var reached []error
	for _, l := range p.limiters {
		key := keyOf(ctx, l.limit.Type, q)
		if !l.allows(key, now) {
			reached = append(reached, fmt.Errorf("limit reached on type %s for key %s", l.limit.Type, strings.Join(key[:], "")))
		}
	}
	if len(reached) > 0 {
		return apierrors.NewTooManyRequestsError(utilerrors.NewAggregate(reached).Error())
	}
	return nil
}

// bucketKey says which bucket of a limit an event is taken from.
type bucketKey [7]string

func keyOf(ctx context.Context, scope Scope, q *registry.Request) (key bucketKey) {
	switch scope {
	case Server:
	case Namespace:
		key[0] = q.Namespace
	case User:
		if user, ok := auth.UserFrom(ctx); ok {
			key[0] = user.Name
		}
	case SourceAndObject:
		key = sourceAndObject(q.Object)
	}
	return key
}

func sourceAndObject(obj resource.Object) bucketKey {
	var component, host string
	var about corev1.ObjectReference
	switch event := obj.(type) {
	case *corev1.Event:
		component, host, about = event.Source.Component, event.Source.Host, event.InvolvedObject
	case *eventsv1.Event:
		component, host, about = event.ReportingController, event.ReportingInstance, event.Regarding
	}
	return bucketKey{component, host, about.Kind, about.Namespace, about.Name, string(about.UID), about.APIVersion}
}

// limiter has the buckets of a limit.
type limiter struct {
	limit Limit

	mu      sync.Mutex // so that a key has one bucket
	buckets *lru.Cache
}

// allows takes an event from the key's bucket, if there is one left in it.
func (l *limiter) allows(key bucketKey, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets.Get(key)
	if !ok {
		for i, part := range key {
			key[i] = strings.Clone(part) // it may be a part of a request's body, which is not kept
		}
		bucket = rate.NewLimiter(rate.Limit(l.limit.QPS), int(l.limit.Burst))
		l.buckets.Add(key, bucket)
	}
	return bucket.(*rate.Limiter).AllowN(now, 1) //nolint:forcetypeassert // allows alone adds values
}
