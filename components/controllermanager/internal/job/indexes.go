package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// span is a range of indexes, both ends included.
type span struct{ first, last int }

// indexSet is a set of completion indexes as sorted, disjoint, non-adjacent
// ranges: a finished job of a million indexes is one of them.
type indexSet []span

// parseIndexes reads the form of a status: "0,2-4,9". What lies beyond limit
// or is not in that form is left out: it would only be run again.
func parseIndexes(text string, limit int) indexSet {
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || first >= limit {
			continue
		}
		spans = append(spans, span{first, min(last, limit-1)})
	}
	return collect(spans)
}

// collect makes a set of ranges in any order, whose memory it uses. To enter one after the other in their places would
// move all others for each of a job's pods.
func collect(spans []span) indexSet {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	set := spans[:0]
	for _, s := range spans {
		if last := len(set) - 1; last >= 0 && set[last].last+1 >= s.first {
			set[last].last = max(set[last].last, s.last)
		} else {
			set = append(set, s)
		}
	}
	return indexSet(set)
}

func (s indexSet) has(index int) bool { return s.past(index) > index }

func (s indexSet) len() (n int) {
	for _, r := range s {
		n += r.last - r.first + 1
	}
	return n
}

// common counts the indexes that are in both sets.
func (s indexSet) common(other indexSet) (n int) {
	for i, j := 0, 0; i < len(s) && j < len(other); {
		if first, last := max(s[i].first, other[j].first), min(s[i].last, other[j].last); first <= last {
			n += last - first + 1
		}
		if s[i].last < other[j].last {
			i++
		} else {
			j++
		}
	}
	return n
}

func (s indexSet) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		switch {
		case r.last == r.first:
			parts[i] = strconv.Itoa(r.first)
		case r.last == r.first+1:
			parts[i] = fmt.Sprintf("%d,%d", r.first, r.last)
		default:
			parts[i] = fmt.Sprintf("%d-%d", r.first, r.last)
		}
	}
	return strings.Join(parts, ",")
}

// missing returns the first n indexes below limit that are in neither set.
func (s indexSet) missing(also indexSet, limit, n int) []int {
	var found []int
	for i := 0; i < limit && len(found) < n; {
		switch next := max(s.past(i), also.past(i)); next {
		case i:
			found = append(found, i)
			i++
		default:
			i = next // a range may have two billions
		}
	}
	return found
}

// past returns the first index from one on that is not in the set.
func (s indexSet) past(index int) int {
	at, found := slices.BinarySearchFunc(s, index, func(a span, i int) int { return a.first - i })
	switch {
	case found:
		return s[at].last + 1
	case at > 0 && s[at-1].last >= index:
		return s[at-1].last + 1
	}
	return index
}

func indexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

// indexOf reads the completion index of a pod.
func indexOf(pod *corev1.Pod) (int, bool) {
	i, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	return i, err == nil && i >= 0
}
