package auth

import "context"

// Decision is what an Authorizer says.
type Decision uint8

// The decisions.
const (
	// NoOpinion: somebody else may allow it; if nobody does, it is refused.
	NoOpinion Decision = iota
	// Allow it.
	Allow
	// Deny it, whoever else would allow it.
	Deny
)

// Attributes is what is decided about. For paths that are not resources only
// User, Verb and Path are set.
type Attributes struct {
	User                         User
	Verb                         string
	Path                         string
	Group, Version, Resource     string
	Subresource, Namespace, Name string
}

// OnResource says whether it is about objects and not about a path.
func (a Attributes) OnResource() bool { return a.Resource != "" }

// Authorizer decides what a user may do. It is called concurrently, once or
// more per request, and should answer from memory.
type Authorizer interface {
	// Authorize decides, and says why if it does not allow. An error is that of
	// a decision which could not be made in full; the decision holds
	// nevertheless.
	Authorize(ctx context.Context, a Attributes) (decision Decision, reason string, err error)
}

// Rules lists what somebody may do.
type Rules struct {
	Resources    []ResourceRule
	NonResources []NonResourceRule
	// Incomplete says that there may be more, and Problem why that is not known.
	Incomplete bool
	Problem    string
}

// ResourceRule allows verbs on resources; "*" stands for all.
type ResourceRule struct {
	Verbs, Groups, Resources, Names []string
}

// NonResourceRule allows verbs on paths; a "*" at the end stands for any rest.
type NonResourceRule struct {
	Verbs, Paths []string
}

// RuleLister is an Authorizer that can say what it allows. It is called
// concurrently.
type RuleLister interface {
	// Rules lists what the user may do in a namespace.
	Rules(ctx context.Context, user User, namespace string) Rules
}

// everything is what those may who may do everything.
func everything() Rules {
	all := []string{"*"}
	return Rules{
		Resources:    []ResourceRule{{Verbs: all, Groups: all, Resources: all}},
		NonResources: []NonResourceRule{{Verbs: all, Paths: all}},
	}
}

// AlwaysAllow allows everybody everything.
type AlwaysAllow struct{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, Attributes) (Decision, string, error) {
	return Allow, "", nil
}

// Rules implements RuleLister.
func (AlwaysAllow) Rules(context.Context, User, string) Rules { return everything() }

// MastersFirst lets the group Masters do everything and asks next about all
// others. The result is a RuleLister, too.
func MastersFirst(next Authorizer) Authorizer { return mastersFirst{next} }

type mastersFirst struct{ next Authorizer }

func (m mastersFirst) Authorize(ctx context.Context, a Attributes) (Decision, string, error) {
	if a.User.In(Masters) {
		return Allow, "", nil
	}
	return m.next.Authorize(ctx, a)
}

func (m mastersFirst) Rules(ctx context.Context, user User, namespace string) Rules {
	if user.In(Masters) {
		return everything()
	}
	if lister, ok := m.next.(RuleLister); ok {
		return lister.Rules(ctx, user, namespace)
	}
	return Rules{Incomplete: true, Problem: "the authorizer in force does not list rules"}
}
