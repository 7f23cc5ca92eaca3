package authorization

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Impersonation is the user that a request acts as, and why it may.
type Impersonation struct {
	// User is the impersonated one, or that of the request if there is none.
	User auth.User
	// Constraint is the verb of constrained impersonation that allowed it, such as
	// impersonate:user-info; "" if it was the verb impersonate.
	Constraint string
	// Needed are the rights by which the user of the request may act as User: all those of
	// one of the alternatives, of which the first was used. They are the same for equal
	// headers of equal requests, and are made while they are read: watches need them for as long
	// as they are open, and a user may have a thousand parts, each of which is a right.
	Needed []iter.Seq[auth.Attributes]
}

// Impersonate returns the user that a request acts as: its own, or the one that its
// Impersonate headers name. The user of the request must be allowed each part of that one,
// by constrained impersonation (KEP-5284) or by the verb impersonate. of returns what the
// request asks for, as its own user.
func (a *Authorizer) Impersonate(r *http.Request, user auth.User, of func() auth.Attributes) (Impersonation, error) {
	own := Impersonation{User: user}
	wanted, present, err := impersonated(r.Header)
	if err != nil || !present {
		return own, err
	}
	start := time.Now()
	impersonation, err := a.impersonate(r.Context(), user, &wanted, of())
	a.metrics.attempted(impersonation.Constraint, start, err)
	return impersonation, err
}

// impersonate decides about the wanted user.
func (a *Authorizer) impersonate(ctx context.Context, user auth.User, wanted *auth.User, request auth.Attributes) (Impersonation, error) {
	alternatives := alternativesOf(wanted, request)
	last := len(alternatives) - 1 // the verb impersonate
	own := Impersonation{User: user}
	var refusal, failure error
	known := false // the refusal is what such a user expects to lack
	if sameUser(&alternatives[0], &alternatives[last]) && a.unconstrained.has(user.Name) {
		_, err := a.allows(ctx, &alternatives[last])
		if err == nil {
			return choose(alternatives, last), nil
		}
		if apierrors.IsForbidden(err) {
			refusal, known = err, true
		}
	}
	for i := range alternatives {
		passed, err := a.allows(ctx, &alternatives[i])
		switch {
		case err == nil:
			a.unconstrained.note(user.Name, i == last)
			return choose(alternatives, i), nil
		case apierrors.IsTooManyRequests(err):
			return own, err // nothing can be decided yet
		case !apierrors.IsForbidden(err):
			failure = err
		case refusal == nil || passed > 0 && !known:
			refusal = err // the one that helps is that of a user who has a part of what is needed
		}
	}
	if failure != nil {
		return own, failure
	}
	return own, refusal
}

// allows returns nil if all rights of an alternative are allowed, and otherwise the first
// refusal, and how many were allowed before it.
func (a *Authorizer) allows(ctx context.Context, alternative *alternative) (passed int, err error) {
	for right := range alternative.needed {
		if right.User.Name == auth.Anonymous {
			return passed, forbidden(right, "") // no rule can be meant for a user that has no credentials
		}
		start := time.Now()
		err := a.Authorize(ctx, right)
		a.metrics.decided(right.Verb, start, err)
		if err != nil {
			return passed, err
		}
		passed++
		if alternative.invalid != "" {
			return passed, forbidden(last(alternative.needed), alternative.invalid)
		}
	}
	return passed, nil
}

// last returns the last of some rights.
func last(rights iter.Seq[auth.Attributes]) (right auth.Attributes) {
	for right = range rights {
		continue
	}
	return right
}

// choose returns the alternative at an index, with the rights of all that lead to the same
// user.
func choose(alternatives []alternative, index int) Impersonation {
	chosen := &alternatives[index]
	needed := []iter.Seq[auth.Attributes]{chosen.needed}
	for i := range alternatives {
		if i != index && alternatives[i].invalid == "" && sameUser(&alternatives[i], chosen) {
			needed = append(needed, alternatives[i].needed)
		}
	}
	return Impersonation{User: chosen.as, Constraint: chosen.constraint, Needed: needed}
}

// sameUser reports whether two alternatives for the same headers lead to the same user.
func sameUser(a, b *alternative) bool { return slices.Equal(a.as.Groups, b.as.Groups) }

// userSet is a set of user names of limited size: what it forgets costs time and nothing
// else. The zero value is empty. It is safe for concurrent use.
type userSet struct {
	mu    sync.RWMutex
	names map[string]struct{}
}

// maxParts is how many groups and values of extra fields a request may impersonate: each is a right of its own, for which an
// authorizer may have to be asked over the network, and for a watch again when rights have changed. About as many fit into the
// headers of a request over HTTP/2, and three times as many over HTTP/1.1.
const maxParts = 1_000

const (
	maxUsers     = 10_000
	maxNameBytes = 256 // of a name that is kept
)

func (s *userSet) has(name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.names[name]
	return ok
}

// note puts a name into the set, or takes it out.
func (s *userSet) note(name string, in bool) {
	if s.has(name) == in || len(name) > maxNameBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !in {
		delete(s.names, name)
		return
	}
	if s.names == nil || len(s.names) >= maxUsers {
		s.names = map[string]struct{}{}
	}
	s.names[name] = struct{}{}
}

// Impersonates reports whether a request names a user to act as.
func Impersonates(h http.Header) bool { return h.Get(authenticationv1.ImpersonateUserHeader) != "" }

// impersonated reads the Impersonate headers; present is false if there are
// none.
func impersonated(h http.Header) (user auth.User, present bool, err error) {
	user.Name = h.Get(authenticationv1.ImpersonateUserHeader)
	user.UID = h.Get(authenticationv1.ImpersonateUIDHeader)
	user.Groups = append([]string(nil), h.Values(authenticationv1.ImpersonateGroupHeader)...)
	for name, values := range h {
		key, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key = strings.ToLower(key)
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[key] = append(user.Extra[key], values...)
	}
	if n := len(user.Groups) + values(user.Extra); n > maxParts {
		return user, false, status.BadRequest("the request impersonates %d groups and values of extra fields, and may have %d", n, maxParts)
	}
	if user.Name == "" && (user.UID != "" || len(user.Groups) > 0 || len(user.Extra) > 0) {
		return user, false, status.BadRequest("the request impersonates groups, a uid or extra fields, but no user: set the header %s, too",
			authenticationv1.ImpersonateUserHeader)
	}
	return user, user.Name != "", nil
}
