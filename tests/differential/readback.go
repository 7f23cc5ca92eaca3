package differential

import (
	"context"
	"net/http"
	"slices"
)

// readBack is a create that is no dry run, and what a GET, a list and a watch from before it show of the
// object then. The object goes when they are answered.
const readBack = "readback"

// Of so many creates with one field set, one is read back, too: it takes as long as ten dry runs, and
// has the servers for itself.
const oneReadBackOf = 10

// decisive are the kinds of which a server asks its cache while it admits another object. What one
// of them said still counts for a moment when it is gone.
var decisive = []string{
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	"ResourceQuota", "LimitRange", "Namespace", "PriorityClass", "RuntimeClass", "StorageClass", "IngressClass",
}

// readsBack reports whether an object can be read back: it can be removed, no server writes into it at
// its own time, and others do not depend on it.
func readsBack(o *object) bool {
	return playable(o.kind) && settled[o.kind.Kind] == nil && o.kind.Kind != "FlowSchema" && !matchesKind(decisive, o.kind.String())
}

// afterCreate are what is read of an object that was created.
var afterCreate = []step{
	{name: "get", at: "/{name}"},
	{name: "list", query: thisOne},
	{name: "watch", query: "watch=true&resourceVersion=$since&timeoutSeconds=5&" + thisOne, events: 1},
}

// askReadBack asks a create and the reads after it, which are steps of its answer.
func (s *side) askReadBack(ctx context.Context, r *request, m message) (*answer, error) {
	at := r.kind.path(namespace)
	before, err := s.do(ctx, http.MethodGet, at+"?limit=1", asJSON, nil)
	if err != nil {
		return nil, err
	}
	p := &player{side: s, kind: r.kind}
	p.note(before)
	a, err := s.exchange(ctx, m, at+"?"+m.query, asJSON)
	if err != nil || !a.accepted() {
		return a, err
	}
	p.base = a.Body // whose name the server may have made
	p.note(a)
	a.Steps, err = p.playAll(ctx, r, slices.Values(afterCreate))
	if err != nil {
		return nil, err
	}
	return a, s.remove(ctx, &object{r.kind, r.base, a.Body})
}
