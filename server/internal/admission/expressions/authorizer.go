package expressions

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/levelwire/levelwire/server/internal/auth"
)

func userInfo(u auth.User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// Authorizer answers the expressions that ask what a user may do, each question once for a
// request. It is used by one goroutine.
type Authorizer struct {
	next    auth.Authorizer
	answers map[question]answer
}

// NewAuthorizer returns an Authorizer for one request, which asks next.
func NewAuthorizer(next auth.Authorizer) *Authorizer { return &Authorizer{next: next} }

// question is what decides an answer. The groups are those of the request's user, or of
// the service account that the name says.
type question struct {
	user, verb, path, group, version, resource, subresource, namespace, name, fields, labels string
}

type answer struct {
	decision authorizer.Decision
	reason   string
	err      error
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (m *Authorizer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	q := question{
		verb: a.GetVerb(), path: a.GetPath(), group: a.GetAPIGroup(), version: a.GetAPIVersion(), resource: a.GetResource(),
		subresource: a.GetSubresource(), namespace: a.GetNamespace(), name: a.GetName(),
	}
	if a.IsResourceRequest() {
		q.path = ""
	}
	// A selector that cannot be parsed narrows nothing.
	if requirements, err := a.GetFieldSelector(); err == nil {
		terms := make([]string, 0, len(requirements))
		for _, r := range requirements {
			terms = append(terms, r.Field+string(r.Operator)+fields.EscapeValue(r.Value))
		}
		q.fields = strings.Join(terms, ",")
	}
	if requirements, err := a.GetLabelSelector(); err == nil {
		q.labels = labels.NewSelector().Add(requirements...).String()
	}
	u := auth.User{}
	if info := a.GetUser(); info != nil {
		u = auth.User{Name: info.GetName(), UID: info.GetUID(), Groups: info.GetGroups(), Extra: info.GetExtra()}
	}
	q.user = u.Name
	if known, ok := m.answers[q]; ok {
		return known.decision, known.reason, known.err
	}
	decision, reason, err := m.next.Authorize(ctx, auth.Attributes{
		User: u, Verb: q.verb, Path: q.path, Group: q.group, Version: q.version, Resource: q.resource, Subresource: q.subresource,
		Namespace: q.namespace, Name: q.name, FieldSelector: q.fields, LabelSelector: q.labels,
	})
	result := answer{authorizer.DecisionNoOpinion, reason, err}
	switch decision {
	case auth.Allow:
		result.decision = authorizer.DecisionAllow
	case auth.Deny:
		result.decision = authorizer.DecisionDeny
	case auth.NoOpinion:
	}
	if m.answers == nil {
		m.answers = map[question]answer{}
	}
	m.answers[q] = result
	return result.decision, result.reason, result.err
}
