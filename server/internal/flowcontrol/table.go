package flowcontrol

import (
	"cmp"
	"maps"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/flowcontrol/defaults"
	"github.com/levelwire/levelwire/server/internal/flowcontrol/fairqueue"
)

// objects is the configuration, by name.
type objects struct {
	schemas map[string]*flowcontrolv1.FlowSchema
	levels  map[string]*flowcontrolv1.PriorityLevelConfiguration
}

// withMandatory returns the objects with those that must be there and their fixed specs,
// so that each request has a schema and a level, whatever is stored.
func (o objects) withMandatory() objects {
	all := objects{maps.Clone(o.schemas), maps.Clone(o.levels)}
	for _, wanted := range defaults.MandatoryFlowSchemas() {
		all.schemas[wanted.Name] = wanted
		if stored := o.schemas[wanted.Name]; stored != nil {
			wanted.ObjectMeta = stored.ObjectMeta
		}
	}
	for _, wanted := range defaults.MandatoryPriorityLevels() {
		all.levels[wanted.Name] = wanted
		if stored := o.levels[wanted.Name]; stored != nil {
			wanted.ObjectMeta = stored.ObjectMeta
			defaults.KeepSettable(wanted, stored)
		}
	}
	return all
}

// defaultObjects is the configuration until the stored one has been read.
func defaultObjects() objects {
	o := objects{map[string]*flowcontrolv1.FlowSchema{}, map[string]*flowcontrolv1.PriorityLevelConfiguration{}}
	for _, s := range defaults.FlowSchemas() {
		o.schemas[s.Name] = s
	}
	for _, l := range defaults.PriorityLevels() {
		o.levels[l.Name] = l
	}
	return o
}

// Match is what a request is.
type Match struct {
	Flow          fairqueue.Flow
	Schema, Level string
	Shares        int  // of the level: nominalConcurrencyShares
	Exempt        bool // its requests wait for nothing
	// SchemaUID and LevelUID have one element each, for headers. They are shared: nothing
	// writes to them.
	SchemaUID, LevelUID []string
}

// schema is a compiled FlowSchema, whose level exists.
type schema struct {
	precedence    int32
	match         Match
	distinguisher flowcontrolv1.FlowDistinguisherMethodType // "": all requests are one flow
	rules         []rule
}

// table is the compiled configuration. It is immutable.
type table struct {
	schemas  []schema // in the order of matching
	subjects subjectIndex
}

// compile configures the levels and returns the table. Schemas without a level match
// nothing.
func compile(o objects, seats *fairqueue.Seats) table {
	o = o.withMandatory()
	var sorted []*flowcontrolv1.FlowSchema
	of := map[string][]string{} // names of schemas by level
	for _, s := range o.schemas {
		level := s.Spec.PriorityLevelConfiguration.Name
		if o.levels[level] != nil {
			sorted = append(sorted, s)
			of[level] = append(of[level], s.Name)
		}
	}
	slices.SortFunc(sorted, func(a, b *flowcontrolv1.FlowSchema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), cmp.Compare(a.Name, b.Name))
	})
	var configs []fairqueue.Config
	shares := map[string]int{}
	for name, level := range o.levels {
		config := levelConfig(level, of[name])
		configs = append(configs, config)
		shares[name] = config.Shares
	}
	seats.Configure(configs)
	t := table{subjects: newSubjectIndex()}
	for _, s := range sorted {
		level := o.levels[s.Spec.PriorityLevelConfiguration.Name]
		compiled := schema{precedence: s.Spec.MatchingPrecedence, match: Match{
			Schema: s.Name, Level: level.Name, Shares: shares[level.Name], Exempt: level.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt,
			SchemaUID: []string{string(s.UID)}, LevelUID: []string{string(level.UID)},
		}}
		compiled.match.Flow.Level = seats.Level(level.Name)
		compiled.match.Flow.Schema = compiled.match.Flow.Level.Schema(s.Name)
		compiled.match.Flow.Seats = 1
		if m := s.Spec.DistinguisherMethod; m != nil {
			compiled.distinguisher = m.Type
		}
		for i := range s.Spec.Rules {
			compiled.rules = append(compiled.rules, compileRule(&s.Spec.Rules[i]))
		}
		t.subjects.add(int32(len(t.schemas)), compiled.rules)
		t.schemas = append(t.schemas, compiled)
	}
	return t
}

// defaultShares is what a level without shares has, by the API.
const defaultShares = 30

// levelConfig returns what a PriorityLevelConfiguration gives.
func levelConfig(l *flowcontrolv1.PriorityLevelConfiguration, schemas []string) fairqueue.Config {
	slices.Sort(schemas)
	c := fairqueue.Config{Name: l.Name, Schemas: schemas, BorrowPercent: -1}
	if l.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt {
		c.Exempt = true
		if e := l.Spec.Exempt; e != nil {
			c.Shares, c.LendablePercent = natural(e.NominalConcurrencyShares, 0), natural(e.LendablePercent, 0)
		}
		return c
	}
	limited := l.Spec.Limited
	if limited == nil {
		return c // validation refuses it: no seats but borrowed ones
	}
	c.Shares = natural(limited.NominalConcurrencyShares, defaultShares)
	c.LendablePercent = min(natural(limited.LendablePercent, 0), 100)
	if limited.BorrowingLimitPercent != nil {
		c.BorrowPercent = natural(limited.BorrowingLimitPercent, 0)
	}
	if q := limited.LimitResponse.Queuing; q != nil && limited.LimitResponse.Type == flowcontrolv1.LimitResponseTypeQueue {
		c.Queues, c.HandSize, c.QueueLength = natural(&q.Queues, 0), natural(&q.HandSize, 0), natural(&q.QueueLengthLimit, 0)
	}
	return c
}

// natural returns what a pointer points to, at least 0, or a default.
func natural(n *int32, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return int(max(*n, 0))
}

// classify returns the match of a request: that of the first schema that matches.
func (t *table) classify(a *auth.Attributes) Match {
	candidates := t.subjects.of(&a.User)
	for i := candidates.next(); i >= 0; i = candidates.next() {
		s := &t.schemas[i]
		for j := range s.rules {
			if s.rules[j].matches(a) {
				return s.matchOf(a)
			}
		}
	}
	// Every user is in one of the groups of the last schema, catch-all; a request without
	// a user is classified as if it were.
	return t.schemas[len(t.schemas)-1].matchOf(a)
}

func (s *schema) matchOf(a *auth.Attributes) Match {
	m := s.match
	switch s.distinguisher {
	case flowcontrolv1.FlowDistinguisherMethodByUserType:
		m.Flow.Key = a.User.Name
	case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
		m.Flow.Key = a.Namespace
	}
	return m
}
