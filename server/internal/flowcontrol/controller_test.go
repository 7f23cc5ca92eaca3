package flowcontrol

import (
	"context"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/flowcontrol/defaults"
)

func limited(name string, shares int32) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: &shares, LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
		},
	}}
}

// TestObjectsActWhileTheServerRuns: created, changed and deleted ones.
func TestObjectsActWhileTheServerRuns(t *testing.T) {
	f := newFixture(t, 600)
	f.start()
	alice := request("alice", "get", "pods", "default")
	is := func(schema, level string) func() (any, bool) {
		return func() (any, bool) {
			m := f.Classify(alice)
			return m, m.Schema == schema && m.Level == level
		}
	}
	condition := func(name string, want flowcontrolv1.ConditionStatus) func() (any, bool) {
		return func() (any, bool) {
			for _, c := range getAs[*flowcontrolv1.FlowSchema](f, "flowschemas", name).Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
					return c, c.Status == want && !c.LastTransitionTime.IsZero()
				}
			}
			return nil, false
		}
	}
	testwait.Stable(t, "a default schema has its condition", condition("global-default", flowcontrolv1.ConditionFalse))

	// A schema whose level does not exist harms nothing, until the level exists.
	f.create("flowschemas", flowSchema("alices", "vip", 20, onEverything(userSubject("alice"))))
	testwait.Stable(t, "the schema dangles", condition("alices", flowcontrolv1.ConditionTrue))
	if m, ok := is("global-default", "global-default")(); !ok {
		t.Errorf("%+v", m)
	}
	f.create("prioritylevelconfigurations", limited("vip", 245)) // as much as all others
	testwait.Stable(t, "the schema dangles no more", condition("alices", flowcontrolv1.ConditionFalse))
	testwait.Stable(t, "the schema matches", is("alices", "vip"))
	if m := f.Classify(alice); m.Shares != 245 {
		t.Errorf("the level has %d shares, want 245", m.Shares)
	}

	nominal := func(level string) int64 {
		for _, stats := range f.seats.Stats(false) {
			if stats.Name == level {
				return stats.Nominal
			}
		}
		return -1
	}
	if got := nominal("vip"); got != 300 {
		t.Errorf("the level has %d of 600 seats, want half of them", got)
	}
	held, err := f.Classify(alice).Flow.Acquire(t.Context())
	must(t, err)
	change(f, "prioritylevelconfigurations", "vip", func(l *flowcontrolv1.PriorityLevelConfiguration) {
		*l.Spec.Limited.NominalConcurrencyShares = 0
	})
	testwait.Stable(t, "the level has no shares", func() (any, bool) { seen := nominal("vip"); return seen, seen == 0 })
	f.delete("prioritylevelconfigurations", "vip")
	testwait.Stable(t, "the schema matches without its level", is("global-default", "global-default"))
	held.Release()
	f.delete("flowschemas", "alices")
}

// TestConditionOfAnEarlierState: another server has seen that the level exists now, and has said so.
func TestConditionOfAnEarlierState(t *testing.T) {
	f := newFixture(t, 600)
	f.create("flowschemas", flowSchema("alices", "vip", 20, onEverything(userSubject("alice"))))
	before := getAs[*flowcontrolv1.FlowSchema](f, "flowschemas", "alices")
	levels := map[string]*flowcontrolv1.PriorityLevelConfiguration{"vip": limited("vip", 245)}
	must(t, f.writeConditions(t.Context(), objects{map[string]*flowcontrolv1.FlowSchema{"alices": before}, levels}))
	must(t, f.writeConditions(t.Context(), objects{map[string]*flowcontrolv1.FlowSchema{"alices": before}, map[string]*flowcontrolv1.PriorityLevelConfiguration{}}))
	after := getAs[*flowcontrolv1.FlowSchema](f, "flowschemas", "alices")
	if conditions := after.Status.Conditions; len(conditions) != 1 || conditions[0].Status != flowcontrolv1.ConditionFalse {
		t.Errorf("the conditions are %+v", conditions)
	}
}

// TestDefaultObjects: they are restored, and kept up to date unless operators have
// changed the suggested ones.
func TestDefaultObjects(t *testing.T) {
	f := newFixture(t, 600)
	must(t, f.Ensure(t.Context()))
	for name, list := range map[string]int{"flowschemas": len(defaults.FlowSchemas()), "prioritylevelconfigurations": len(defaults.PriorityLevels())} {
		snapshot, err := f.of(name).Snapshot(t.Context())
		must(t, err)
		if snapshot.Len() != list {
			t.Errorf("there are %d %s, want %d", snapshot.Len(), name, list)
		}
	}
	key := flowcontrolv1.AutoUpdateAnnotationKey
	schema := func(name string) *flowcontrolv1.FlowSchema {
		return getAs[*flowcontrolv1.FlowSchema](f, "flowschemas", name)
	}
	precedence := func(name string, annotation *string) {
		change(f, "flowschemas", name, func(s *flowcontrolv1.FlowSchema) {
			s.Spec.MatchingPrecedence = 7777
			if delete(s.Annotations, key); annotation != nil {
				s.Annotations[key] = *annotation
			}
		})
	}
	yes, no := "true", "false"
	precedence("service-accounts", &yes)
	precedence("probes", &no)
	precedence("system-nodes", nil) // was changed, so it is the operator's
	change(f, "flowschemas", "kube-scheduler", func(s *flowcontrolv1.FlowSchema) { delete(s.Annotations, key) })
	change(f, "prioritylevelconfigurations", "exempt", func(l *flowcontrolv1.PriorityLevelConfiguration) {
		*l.Spec.Exempt.NominalConcurrencyShares = 10
	})
	f.delete("flowschemas", "exempt")
	f.delete("prioritylevelconfigurations", "node-high")
	former := limited("of-a-former-version", 5)
	former.Annotations = map[string]string{key: "true"}
	f.create("prioritylevelconfigurations", former)
	f.create("prioritylevelconfigurations", limited("an-operators", 5))
	must(t, f.Ensure(t.Context()))
	for name, want := range map[string]struct {
		precedence int32
		annotation string
	}{
		"service-accounts": {9000, "true"}, "probes": {7777, "false"}, "system-nodes": {7777, "false"},
		"kube-scheduler": {800, "true"}, "exempt": {1, "true"},
	} {
		if got := schema(name); got.Spec.MatchingPrecedence != want.precedence || got.Annotations[key] != want.annotation {
			t.Errorf("%s has precedence %d and annotation %q, want %+v", name, got.Spec.MatchingPrecedence, got.Annotations[key], want)
		}
	}
	exempt := getAs[*flowcontrolv1.PriorityLevelConfiguration](f, "prioritylevelconfigurations", "exempt")
	if *exempt.Spec.Exempt.NominalConcurrencyShares != 10 {
		t.Error("an operator cannot give the exempt level seats")
	}
	names := map[string]bool{}
	snapshot, err := f.of("prioritylevelconfigurations").Snapshot(t.Context())
	must(t, err)
	for o := range snapshot.Range("", "") {
		names[o.Attributes.Name] = true
	}
	if names["of-a-former-version"] || !names["an-operators"] || !names["node-high"] {
		t.Errorf("there are %v", names)
	}
	before := f.of("flowschemas").Cache().StateRevision()
	must(t, f.Ensure(context.Background()))
	if after := f.of("flowschemas").Cache().StateRevision(); after != before {
		t.Error("objects that are right are written")
	}
}
