package differential

import (
	"context"
	"slices"
)

// changes says what the judge answers otherwise than an older recording has it, as a new version of
// Kubernetes may. It asks again what the older one asks of objects that are as they were then.
func (c *comparisonRun) changes(ctx context.Context, old *recording) (*report, error) {
	requests := c.recording.alsoIn(old)
	notAsked := slices.DeleteFunc(slices.Clone(requests), func(q *request) bool { return c.recorded(q) != nil })
	if _, err := c.ask(ctx, notAsked); err != nil {
		return nil, err
	}
	result := newReport()
	for _, q := range requests {
		now, before := c.recording.answer(q.String()), old.answer(q.String())
		if now == nil || !slices.EqualFunc(now.Steps, before.Steps, func(a, b *answer) bool { return a.Step == b.Step }) {
			continue // another sequence
		}
		sent, err := q.body(c.recording.base(q))
		if err != nil {
			return nil, err
		}
		result.add(q, compare(q, normalise(now, q.kind, sent), normalise(before, q.kind, sent)), nil) // the rules may have changed, too
	}
	return result, nil
}

// kindsChanged returns the kinds that a recording has and an older one lacks, and the other way round.
func (r *recording) kindsChanged(old *recording) (added, gone []string) {
	now, before := r.kindNames(), old.kindNames()
	in := func(list []string) func(string) bool {
		return func(name string) bool { return slices.Contains(list, name) }
	}
	return slices.DeleteFunc(slices.Clone(now), in(before)), slices.DeleteFunc(before, in(now))
}

func (r *recording) kindNames() (names []string) {
	if r.Catalog == nil {
		return nil
	}
	for _, k := range r.Catalog.creatable() {
		names = append(names, k.String())
	}
	return names
}

// alsoIn returns the requests of an older recording that can still be asked, in the order of their names.
func (r *recording) alsoIn(old *recording) []*request {
	var list []*request
	for _, name := range sortedAnswers(old) {
		q, err := parseRequest(r.Catalog, name)
		if err == nil && literal(r.base(q)) == literal(old.base(q)) {
			list = append(list, q)
		}
	}
	return list
}
