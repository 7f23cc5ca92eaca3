package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/storage"
)

// An upstream refuses what the relay may not see, and also what it cannot decide about yet: a kube-apiserver that has just started
// answers 403 to everybody but system:masters until it has read its roles and bindings. So the relay asks it, by
// SelfSubjectAccessReviews, whether the right is gone. An upstream that has not read its roles refuses these questions, too, and one
// that has read a part of them may deny what it allows a moment later.

const (
	// refusalPatience is for how long a relay keeps what it has of a resource that the upstream refuses without saying twice that the
	// right is gone. Meanwhile clients see of it what the upstream has allowed them before.
	refusalPatience = 30 * time.Second
	// refusalPause is the least time between two questions whether a right is gone.
	refusalPause = time.Second
	// refusalTimeout is how long the answer may take: reads of the resource may wait for it.
	refusalTimeout = 2 * time.Second
)

// refusals are the refusals of one resource. They are safe for concurrent use.
type refusals struct {
	mu          sync.Mutex
	first, last time.Time // of those in a row; zero: there is none
	asked       time.Time // when the upstream was asked last whether a right is gone
	denied      bool      // it has said so
}

// end notes that the upstream has shown the resource.
func (f *refusals) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first, f.last, f.denied = time.Time{}, time.Time{}, false
}

// note notes a refusal. It returns whether there has been nothing else for refusalPatience, and whether the upstream should be asked
// for the right. After a time without refusals, in which it may not have answered at all, the patience begins anew.
func (f *refusals) note(now time.Time) (long, ask bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.last) > refusalPatience {
		f.first, f.denied = now, false
	}
	f.last = now
	if ask = now.Sub(f.asked) >= refusalPause; ask {
		f.asked = now
	}
	return now.Sub(f.first) >= refusalPatience, ask
}

// noteAnswer notes whether the upstream has denied the right. It returns true if it has done so twice in a row.
func (f *refusals) noteAnswer(denied bool) (twice bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	twice = denied && f.denied
	f.denied = denied
	return twice
}

// final notes a refusal, and reports whether it will last: the upstream says twice that the relay may not use one of the verbs, or has
// refused for refusalPatience. It may ask the upstream, and waits for the answer.
func (f *refusals) final(ctx context.Context, r *Relay, resource schema.GroupResource, verbs ...string) bool {
	long, ask := f.note(r.contact.now())
	if long || !ask {
		return long
	}
	ctx, cancel := context.WithTimeout(ctx, refusalTimeout)
	defer cancel()
	for _, verb := range verbs {
		answer, err := r.review(ctx, onResource(verb, resource.Group, resource.Resource, ""))
		switch {
		case err != nil:
			return f.noteAnswer(false)
		case isDenied(answer):
			return f.noteAnswer(true)
		}
	}
	return f.noteAnswer(false)
}

// isDenied reports whether an upstream has decided against a right. It has not if it names an error, or a role that it does not find
// ("RBAC: ..."): it may be about to read it.
func isDenied(answer authorizationv1.SubjectAccessReviewStatus) bool {
	return !answer.Allowed && answer.EvaluationError == "" && !strings.HasPrefix(answer.Reason, "RBAC:")
}

// isNotShown reports whether an error says that the upstream does not have a resource, or does not show it to the relay. It notes
// refusals: see final.
func (f *refusals) isNotShown(ctx context.Context, r *Relay, resource schema.GroupResource, err error) bool {
	if isRefusal(err) {
		return f.final(ctx, r, resource, "list", "watch")
	}
	return client.IsStatus(err) && (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err))
}

// isRefusal reports whether an upstream has refused a request because of who asks.
func isRefusal(err error) bool { return client.IsStatus(err) && apierrors.IsForbidden(err) }

// streamRefused is called when the upstream has refused the relay the stream of the resource, or a list to fill the cache. It drops the
// source, unless the upstream may only have to read its roles.
func (s *source) streamRefused(err error) {
	// Nobody uses what the cache has before its first fill, and a cache without a stream would be filled by list after list: requests
	// that are passed on cost less.
	if !s.cache.IsReady() || s.unwatched.Load() || s.refusals.final(s.running, s.relay, s.res.GroupResource(), "list", "watch") {
		// The relay shows nothing that it may not see itself any more.
		s.breakUp(err)
	}
}

// errMayNotList says that the relay may not ask the upstream for the current version of a resource. It may still have the stream: an
// upstream may authorize a watch only when it is opened.
var errMayNotList = errors.New("the upstream does not let the relay list the resource")

// questionRefused returns the error for who waits for the current version, which the upstream has refused.
func (s *source) questionRefused(err error) error {
	if s.unanswered.final(s.running, s.relay, s.res.GroupResource(), "list") {
		return fmt.Errorf("%w: %w", errMayNotList, err)
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, apierrors.NewServiceUnavailable("the upstream refuses the relay: "+err.Error()))
}
