package patch

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/status"
)

// Bounds of what applying a patch may cost. The patch libraries parse the rest
// of a document again on each level, and a strategic merge finds and sorts the
// elements of a list by going through it again for each: two of 4,900 elements
// in opposite orders took 7.5 s of processor time, what is allowed takes 1.4 s.
const (
	maxPatchDepth     = 200
	maxMergedElements = 10_000
	maxComparisons    = 16_000_000 // as with 2,000 live elements and 2,000 of the patch
	maxMovedElements  = 500_000_000
	maxParsedBytes    = 64 << 20 // of all levels
)

// documentSize says how much work a JSON document makes.
type documentSize struct {
	depth    int // deepest nesting of objects and lists
	elements int // elements of all lists together
}

// measure measures a document that is known to be well-formed. It ends early
// in one that nests deeper than maxPatchDepth.
func measure(doc []byte) documentSize {
	var s documentSize
	var inList [maxPatchDepth + 1]bool
	depth, opened := 0, false
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case ']', '}':
			depth--
			opened = false
			continue
		}
		if opened {
			s.elements++ // a list's first
		}
		opened = false
		switch c {
		case '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			if s.depth = max(s.depth, depth); depth > maxPatchDepth {
				return s
			}
			inList[depth], opened = c == '[', c == '['
		case ',':
			if inList[depth] {
				s.elements++
			}
		}
	}
	return s
}

// checkDepth refuses a patch that nests deeper than any object does.
func (p *Patch) checkDepth() error {
	if p.size = measure(p.body); p.size.depth > maxPatchDepth {
		return status.BadRequest("the patch nests deeper than %d levels", maxPatchDepth)
	}
	return nil
}

// checkMoves refuses a JSON patch of many operations on long lists: each that adds or removes an element
// copies its list.
func (p *Patch) checkMoves(doc []byte) error {
	elements := p.size.elements + measure(doc).elements
	if n := len(p.ops); n > 0 && elements > maxMovedElements/n {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"%d operations on lists of %d elements, the limit is %d together: send fewer operations, or the whole object", n, elements, maxMovedElements))
	}
	return nil
}

// checkLevels refuses what goes down so many levels of a large document: what is below each is parsed, and written, again.
func (p *Patch) checkLevels(what string, levels int, doc []byte, instead string) error {
	if n := len(doc) + len(p.body); levels > 0 && n > maxParsedBytes/levels {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"%s %d levels deep in %d bytes of object and patch: levels times bytes may be %d at most; %s, or send the whole object",
			what, levels, n, maxParsedBytes, instead))
	}
	return nil
}

// CheckOperations returns an error if operations that no client has sent, as those of a policy, would cost more than a
// client's may when they are applied to a document.
func CheckOperations(ops jsonpatch.Patch, doc []byte) error {
	if n := len(ops); n > maxPatchOperations {
		return tooManyOperations(n)
	}
	body, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	p := &Patch{body: body, ops: ops, levels: levelsOf(ops)}
	if err := p.checkDepth(); err != nil {
		return err
	}
	if err := p.checkMoves(doc); err != nil {
		return err
	}
	return p.checkLevels("a JSON patch", p.levels, doc, "patch a higher level")
}

func tooManyOperations(n int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, n))
}

// levelsOf returns down to which level a JSON patch has a document parsed at most.
func levelsOf(ops jsonpatch.Patch) (down int) {
	for _, op := range ops {
		path, from := levelsIn(op.Path), levelsIn(op.From)
		reached := max(path, from)
		kind := op.Kind()
		if kind == "test" { // what is there is parsed, as deep as the value nests
			reached++
			if value := op["value"]; value != nil {
				reached += measure(*value).depth
			}
		}
		down = max(down, reached)
		if kind == "move" { // what is parsed of it stays so, and is further down then
			down += max(0, path-from)
		}
	}
	return down
}

// levelsIn returns how deep in a document a pointer of an operation is.
func levelsIn(pointer func() (string, error)) int {
	text, err := pointer()
	if err != nil {
		return 0
	}
	return strings.Count(text, "/")
}

// checkElements refuses a strategic merge of lists so long that it would take
// the time of many requests.
func (p *Patch) checkElements(doc []byte) error {
	if p.size.elements == 0 {
		return nil
	}
	if n := p.size.elements + measure(doc).elements; n > maxMergedElements {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"a strategic merge of %d list elements, the limit is %d: send a JSON patch, or the whole object", n, maxMergedElements))
	}
	return nil
}
