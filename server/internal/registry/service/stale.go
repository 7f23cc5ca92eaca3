package service

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// staleLooks bounds how many claims of a full range one request looks at: all node ports, and a
	// part of a large range of addresses, of which the next request looks at another one.
	staleLooks = 4096
	// staleTries bounds how many of them it asks the store about.
	staleTries = 8
)

// staleLook looks among the claims of a full range for those that a crash has left behind. It goes
// by the caches, so that the request costs the store little if there are none.
type staleLook struct {
	allocator    *Allocator
	looks, tries int
	holding      map[types.NamespacedName]claims // what Services hold that it has seen
}

func newStaleLook(s *Allocator) *staleLook {
	return &staleLook{allocator: s, holding: map[types.NamespacedName]claims{}}
}

func (l *staleLook) goesOn() bool { return l.looks < staleLooks && l.tries < staleTries }

// suspects reports whether a claim seems to be stale, so that the store is to be asked.
func (l *staleLook) suspects(ctx context.Context, since time.Time, owner types.NamespacedName, holds func(claims) bool) bool {
	l.looks++
	if l.allocator.set.Now().Sub(since) < claimGrace {
		return false
	}
	held, seen := l.holding[owner]
	if !seen {
		held = l.allocator.recentClaims(ctx, owner)
		l.holding[owner] = held
	}
	if holds(held) {
		return false
	}
	l.tries++
	return true
}

// recentClaims returns what a Service holds as the cache shows it; nothing if it cannot be read.
func (s *Allocator) recentClaims(ctx context.Context, name types.NamespacedName) claims {
	services, ok := s.set.Lookup("", "v1", "services")
	if !ok {
		return claims{}
	}
	obj, err := services.GetRecent(ctx, name.Namespace, name.Name)
	if err != nil {
		return claims{}
	}
	svc, _ := obj.(*corev1.Service)
	return claimsOf(svc)
}
