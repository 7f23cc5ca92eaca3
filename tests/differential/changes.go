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
