package customresource

import (
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Nothing that Kubernetes checks bounds what a column's path finds, or what a row shows: each .. finds all that is
// below all that the one before it has found, a union finds the same value again, and a thousand columns
// may each show the whole object. What goes beyond these bounds is shown as an empty cell.
const (
	maxPathBytes = 1 << 10
	// maxRowWork is how many values the paths of a row may look at together. The first fewSearches of those that look at
	// each value once at most are not counted.
	maxRowWork  = 1_000_000
	fewSearches = 30
	// maxRowBytes is how long the texts of a row may be together, one of them not counted.
	maxRowBytes = 1 << 20
)

// columnPath is the path of a column.
type columnPath struct {
	*jsonpath.JSONPath // nil if it cannot be used
	// copies is how many times the path may look at each value of an object; 0: it looks at one value, by names
	// and numbers.
	copies int
	// deep: what is found is copied once for each level of the object.
	deep bool
}

// parsePath returns a path that cannot be used where the text cannot be parsed, where it leaves its braces (it could
// begin a range, and paths with a range must not be evaluated by two requests at once), and where it may find
// too much.
func parsePath(name, text string) (path columnPath) {
	if len(text) > maxPathBytes || strings.ContainsAny(text, "{}") || strings.Count(text, "..") > 1 {
		return path
	}
	text = "{" + text + "}"
	parsed, err := jsonpath.Parse(name, text)
	if err != nil {
		return path
	}
	copies := copiesOf(parsed.Root, 1)
	if copies > maxRowWork {
		return path
	}
	path.deep = strings.Contains(text, "..")
	if path.copies = copies; copies == 1 && !path.deep && !strings.ContainsAny(text, "*?:") {
		path.copies = 0
	}
	path.JSONPath = jsonpath.New(name).AllowMissingKeys(true)
	if path.Parse(text) != nil {
		return columnPath{}
	}
	return path
}

// copiesOf returns how often a path that is found so many times already finds a value, up to about maxRowWork.
func copiesOf(list *jsonpath.ListNode, before int) int {
	copies := before
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *jsonpath.ListNode:
			copies = copiesOf(node, copies)
		case *jsonpath.FilterNode:
			copies = max(copies, copiesOf(node.Left, copies), copiesOf(node.Right, copies))
		case *jsonpath.UnionNode:
			sum := 0
			for _, part := range node.Nodes {
				sum += copiesOf(part, copies)
			}
			copies = max(1, sum)
		}
		if copies > maxRowWork {
			break
		}
	}
	return copies
}

// row is what the cells of a row may cost yet.
type row struct {
	object      map[string]any
	size        extent // of the object; zero: not known yet
	searches    int    // paths that were evaluated without being counted
	work, bytes int
}

func newRow(object map[string]any) *row {
	return &row{object: object, work: maxRowWork, bytes: maxRowBytes}
}

// allows reports whether a path may be evaluated, and counts what that costs.
func (r *row) allows(path columnPath) bool {
	if path.JSONPath == nil || r.bytes <= 0 {
		return false
	}
	if path.copies == 0 {
		return true
	}
	if path.copies == 1 && !path.deep && r.searches < fewSearches {
		r.searches++
		return true
	}
	if r.size.values == 0 {
		r.size.add(r.object, 1)
	}
	each := r.size.values + r.size.bytes
	if path.deep {
		each = r.size.values*r.size.depth + r.size.bytes
	}
	if path.copies > r.work/each {
		return false
	}
	r.work -= path.copies * each
	return true
}

// extent is how many values there are in a value, how deep they are, and how long its strings are.
type extent struct{ values, depth, bytes int }

func (e *extent) add(value any, depth int) {
	e.values++
	e.depth = max(e.depth, depth)
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			e.add(member, depth+1)
		}
	case []any:
		for _, element := range v {
			e.add(element, depth+1)
		}
	case string:
		e.bytes += len(v)
	}
}
