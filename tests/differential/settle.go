package differential

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Controllers of a server write into some objects a moment after a client has, each server at its
// own time. What is compared is what they end with.

// pollAfter is how long the comparison waits before it reads again what a controller has yet to
// write.
const pollAfter = 5 * time.Millisecond

// settleWithin is how long controllers may take; more is an error.
const settleWithin = time.Minute

// settled are the kinds into which a server's controllers write, and what an object looks like when
// they have. Those of FlowSchemas are left out: kube-apiserver leaves one alone for a minute that is
// often written.
var settled = map[string]func(s *side, object map[string]any) bool{
	"APIService":                func(_ *side, o map[string]any) bool { return hasCondition(o, "Available") },
	"CustomResourceDefinition":  func(_ *side, o map[string]any) bool { return definitionIsSettled(o) },
	"ValidatingAdmissionPolicy": policyIsSettled,
}

// policyIsSettled: the server has checked the policy as it is.
func policyIsSettled(s *side, o map[string]any) bool {
	seen, _ := get(o, path{"status", "observedGeneration"})
	now, _ := get(o, path{"metadata", "generation"})
	return !s.checksPolicies || literal(seen) == literal(now)
}

const definitionFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// definitionIsSettled: a definition is established, or refused; one that is deleted has no objects any
// more, and stays only for the finalizers of others.
func definitionIsSettled(o map[string]any) bool {
	if _, deleted := get(o, path{"metadata", "deletionTimestamp"}); deleted {
		finalizers, _ := get(o, path{"metadata", "finalizers"})
		list, _ := finalizers.([]any)
		return !slices.Contains(list, any(definitionFinalizer))
	}
	return conditionStatus(o, "NamesAccepted") == "False" || conditionStatus(o, "Established") == "True"
}

func hasCondition(o map[string]any, kind string) bool { return condition(o, kind) != nil }

func conditionStatus(o map[string]any, kind string) string {
	status, _ := condition(o, kind)["status"].(string)
	return status
}

func condition(o map[string]any, kind string) map[string]any {
	list, _ := get(o, path{"status", "conditions"})
	conditions, _ := list.([]any)
	for _, item := range conditions {
		if c, _ := item.(map[string]any); c["type"] == kind {
			return c
		}
	}
	return nil
}

// settle reads an object until the server's controllers have written what they write into one of its
// kind, and returns the last answer: that it is not there, too.
func (s *side) settle(ctx context.Context, k *kind, at string) (*answer, error) {
	is := settled[k.Kind]
	wait, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		a, err := s.do(ctx, http.MethodGet, at, asJSON, nil)
		if err != nil || !a.accepted() || is == nil || is(s, a.Body) {
			return a, err
		}
		select {
		case <-time.After(pollAfter):
		case <-wait.Done():
			return nil, fmt.Errorf("%s: %s: its controllers have not written what they write: %w", s.name, at, wait.Err())
		}
	}
}
