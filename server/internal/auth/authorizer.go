package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Decision is the answer of an Authorizer.
type Decision uint8

// The decisions.
const (
	// NoOpinion: another Authorizer may allow the request; if none does, it is
	// refused.
	NoOpinion Decision = iota
	// Allow the request.
	Allow
	// Deny the request, even if another Authorizer would allow it.
	Deny
)

// Attributes describe the request that is decided about. For paths that are not
// resources only User, Verb and Path are set.
type Attributes struct {
	User                         User
	Verb                         string
	Path                         string
	Group, Version, Resource     string
	Subresource, Namespace, Name string
	// FieldSelector and LabelSelector are those of a list, a watch or a deletecollection,
	// not parsed: they can only narrow what the request is about (KEP-4601). One that
	// cannot be parsed narrows nothing; the request is refused later.
	FieldSelector, LabelSelector string
}

// OnResource reports whether the request is about a resource and not about a path.
func (a Attributes) OnResource() bool { return a.Resource != "" || a.Path == "" }

// htmlEscaper escapes what a browser would take for markup, as Kubernetes does.
var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Refusal names the user and what the user may not do, and the reason unless that is empty, in the words of Kubernetes:
// clients compare them.
func (a Attributes) Refusal(reason string) string {
	refusal := htmlEscaper.Replace(a.refusal())
	if reason != "" {
		refusal += ": " + reason
	}
	return refusal
}

func (a Attributes) refusal() string {
	if !a.OnResource() {
		return fmt.Sprintf("User %q cannot %s path %q", a.User.Name, a.Verb, a.Path)
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	scope := "at the cluster scope"
	if a.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", a.User.Name, a.Verb, resource, a.Group, scope)
}

// ErrNotReady is matched by the error of an Authorizer that has not read yet what it
// decides by.
var ErrNotReady = errors.New("what decides about permissions has not been read yet: try again")

// Authorizer decides what a user may do. It is called concurrently, once or
// more per request, and should answer from memory.
type Authorizer interface {
	// Authorize returns the decision and its reason, which may be empty. An error
	// says that a part of the decision could not be made; the decision is valid
	// nevertheless.
	Authorize(ctx context.Context, a Attributes) (decision Decision, reason string, err error)
}

// Rules lists what a user may do.
type Rules struct {
	Resources    []ResourceRule
	NonResources []NonResourceRule
	// Incomplete says that the user may be allowed more, and Problem why that is
	// not known.
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

// RuleLister is an Authorizer that can list what it allows. It is called
// concurrently.
type RuleLister interface {
	// Rules lists what the user may do in a namespace.
	Rules(ctx context.Context, user User, namespace string) Rules
}

// allRules are the rules of a user who may do everything.
func allRules() Rules {
	all := []string{"*"}
	return Rules{
		Resources:    []ResourceRule{{Verbs: all, Groups: all, Resources: all}},
		NonResources: []NonResourceRule{{Verbs: all, Paths: all}},
	}
}

// AlwaysAllow allows every request.
type AlwaysAllow struct{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, Attributes) (Decision, string, error) {
	return Allow, "", nil
}

// Rules implements RuleLister.
func (AlwaysAllow) Rules(context.Context, User, string) Rules { return allRules() }

// AlwaysDeny allows no request.
type AlwaysDeny struct{}

// Authorize implements Authorizer.
func (AlwaysDeny) Authorize(context.Context, Attributes) (Decision, string, error) {
	return NoOpinion, "Everything is forbidden.", nil
}

// Rules implements RuleLister.
func (AlwaysDeny) Rules(context.Context, User, string) Rules { return Rules{} }

// AuthorizerUnion asks several authorizers in turn, until one allows or denies. If
// none does, it has no opinion, for the reasons of all. It is a RuleLister and a
// ChangeNotifier, too.
type AuthorizerUnion []Authorizer

// Authorize implements Authorizer.
func (u AuthorizerUnion) Authorize(ctx context.Context, a Attributes) (Decision, string, error) {
	var reasons []string
	var errs []error
	for _, authorizer := range u {
		decision, reason, err := authorizer.Authorize(ctx, a)
		if decision != NoOpinion {
			return decision, reason, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return NoOpinion, strings.Join(reasons, "\n"), errors.Join(errs...)
}

// Rules implements RuleLister: the rules of all that can list them.
func (u AuthorizerUnion) Rules(ctx context.Context, user User, namespace string) Rules {
	var all Rules
	var problems []string
	for _, authorizer := range u {
		rules := listRules(ctx, authorizer, user, namespace)
		all.Resources = append(all.Resources, rules.Resources...)
		all.NonResources = append(all.NonResources, rules.NonResources...)
		all.Incomplete = all.Incomplete || rules.Incomplete
		if rules.Problem != "" {
			problems = append(problems, rules.Problem)
		}
	}
	all.Problem = strings.Join(problems, "; ")
	return all
}

// OnChange implements ChangeNotifier.
func (u AuthorizerUnion) OnChange(changed func(user string)) (stop func()) {
	return OnChange(changed, u...)
}

func listRules(ctx context.Context, authorizer Authorizer, user User, namespace string) Rules {
	if lister, ok := authorizer.(RuleLister); ok {
		return lister.Rules(ctx, user, namespace)
	}
	return Rules{Incomplete: true, Problem: "the authorizer in force does not list rules"}
}

// MastersFirst allows every request of the group Masters, and asks next about
// requests of other users. The result is a RuleLister and a ChangeNotifier, too.
func MastersFirst(next Authorizer) Authorizer { return mastersFirst{next} }

type mastersFirst struct{ next Authorizer }

func (m mastersFirst) Authorize(ctx context.Context, a Attributes) (Decision, string, error) {
	if a.User.In(Masters) {
		return Allow, "", nil
	}
	return m.next.Authorize(ctx, a)
}

func (m mastersFirst) OnChange(changed func(user string)) (stop func()) {
	return OnChange(changed, m.next)
}

func (m mastersFirst) Rules(ctx context.Context, user User, namespace string) Rules {
	if user.In(Masters) {
		return allRules()
	}
	return listRules(ctx, m.next, user, namespace)
}
