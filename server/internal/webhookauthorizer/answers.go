package webhookauthorizer

import (
	"container/list"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/levelwire/levelwire/server/internal/auth"
)

const (
	// maxAnswerBytes bounds what is remembered.
	maxAnswerBytes = 8 << 20
	// answerBytes is what an answer takes besides its reason.
	answerBytes = 256
)

// digest stands for a question.
type digest [sha256.Size]byte

// answers remembers what the other server has said, for a short time and in a bounded number
// of bytes: beyond it, what was not used for longest is forgotten. It holds the digest of each
// question and not the question, which may be long: it has the names, groups and extra values
// of a user, and selectors. The zero value remembers nothing.
type answers struct {
	allowedTTL, deniedTTL time.Duration
	maxBytes              int
	now                   func() time.Time

	mu    sync.Mutex               // guards the fields below
	held  map[digest]*list.Element // of *answer
	used  list.List                // what was used last is in front
	bytes int
	// forgotten grows when all answers are forgotten.
	forgotten int
}

// answer is what the other server has said. It is not changed.
type answer struct {
	question digest
	decision auth.Decision
	reason   string
	until    time.Time
}

func (a *answer) size() int { return answerBytes + len(a.reason) }

// get returns the answer to a question, if it may still be used.
func (a *answers) get(question digest) (decision auth.Decision, reason string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	element := a.held[question]
	if element == nil {
		return 0, "", false
	}
	found := element.Value.(*answer)
	if !a.now().Before(found.until) {
		a.remove(element)
		return 0, "", false
	}
	a.used.MoveToFront(element)
	return found.decision, found.reason, true
}

// forget forgets all answers, and those to questions that are under way.
func (a *answers) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.held)
	a.used.Init()
	a.bytes = 0
	a.forgotten++
}

// asking returns what keep is called with when a question that is asked after this is answered.
func (a *answers) asking() (forgotten int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.forgotten
}

// keep remembers an answer, unless all were forgotten since it was asked for.
func (a *answers) keep(question digest, decision auth.Decision, reason string, forgotten int) {
	ttl := a.deniedTTL
	if decision == auth.Allow {
		ttl = a.allowedTTL
	}
	if ttl <= 0 {
		return
	}
	added := &answer{question: question, decision: decision, reason: strings.Clone(reason), until: a.now().Add(ttl)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.forgotten != forgotten {
		return
	}
	if before := a.held[question]; before != nil {
		a.remove(before)
	}
	if a.held == nil {
		a.held = map[digest]*list.Element{}
	}
	a.held[question] = a.used.PushFront(added)
	for a.bytes += added.size(); a.bytes > a.maxBytes; {
		a.remove(a.used.Back())
	}
}

// remove forgets an answer. The lock is held.
func (a *answers) remove(element *list.Element) {
	removed := a.used.Remove(element).(*answer)
	delete(a.held, removed.question)
	a.bytes -= removed.size()
}

// uncached keeps an answer out of the cache of k8s.io/apiserver, which counts answers and not
// bytes, and holds each question as it is sent. What that cache does not keep is what is asked
// about long attributes. Of a request for a resource, the path is not sent; of another one, the
// name is not.
type uncached struct{ authorizer.AttributesRecord }

// uncachedFrom is the length of attributes from which that cache keeps no answer.
const uncachedFrom = 10_000

var longAttribute = strings.Repeat("-", uncachedFrom)

// GetPath implements authorizer.Attributes.
func (u uncached) GetPath() string {
	if u.IsResourceRequest() {
		return longAttribute
	}
	return u.AttributesRecord.GetPath()
}

// GetName implements authorizer.Attributes.
func (u uncached) GetName() string {
	if u.IsResourceRequest() {
		return u.AttributesRecord.GetName()
	}
	return longAttribute
}
