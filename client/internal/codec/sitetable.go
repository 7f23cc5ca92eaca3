package codec

import (
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A site is a place in the documents of a type: the tolerations of a pod's spec, the
// name of a container. Documents that come one after the other are mostly equal at
// most of their sites, since a list is sorted by name and the objects of one
// workload stand together. So a decoder compares what comes next with what it read
// at the same site before. If the bytes are equal it takes the value from there, and
// need neither look for the end of the text nor check it. This is the inline cache
// of a compiler, with JSON in place of calls.

// siteTable holds what one decoder has read at each site. It takes some tens of
// kilobytes, so it stays empty until objects have come: most watches are idle.
type siteTable struct {
	pages   []*[sitesPerPage]site
	objects int // that were decoded, up to objectsWithoutSites
}

// objectsWithoutSites is after how many objects a decoder begins to remember.
const objectsWithoutSites = 8

// A decoder meets a few hundred of the sites of all types, which are numbered by
// type.
const sitesPerPage = 32

type site struct {
	next   *jsonValue // the member that came after this one the last time
	count  int        // of the elements that an array or map had the last time
	recent []siteValue
	missed uint8 // times in a row that nothing was found, see misses
}

// siteValue is a value that was read at a site, and the text that it was read from.
type siteValue struct {
	encoded []byte
	text    string        // of a string
	time    metav1.Time   // of a metav1.Time
	part    reflect.Value // of what is shared
}

// recentValues is how many values a site keeps: a few, for places where things
// alternate, such as the elements of an array.
const recentValues = 4

var lastSite atomic.Int64

// newSite returns a number that no other site has.
func newSite() int { return int(lastSite.Add(1)) }

// begin is called before each object.
func (t *siteTable) begin() {
	if t.objects <= objectsWithoutSites {
		t.objects++
	}
}

// at returns a site by its number; nil, which knows nothing and remembers nothing,
// while the table is empty.
func (t *siteTable) at(number int) *site {
	if t.objects <= objectsWithoutSites {
		return nil
	}
	page := number / sitesPerPage
	if page >= len(t.pages) {
		t.pages = append(t.pages, make([]*[sitesPerPage]site, page+1-len(t.pages))...)
	}
	if t.pages[page] == nil {
		t.pages[page] = new([sitesPerPage]site)
	}
	return &t.pages[page][number%sitesPerPage]
}

// find returns a value of the site with whose text rest begins; nil if there is
// none. Values that are found often come to stand in front.
func (s *site) find(rest []byte) *siteValue {
	if s == nil {
		return nil
	}
	for i := range s.recent {
		v := &s.recent[i]
		n := len(v.encoded)
		if n >= len(rest) || string(rest[:n]) != string(v.encoded) || !endsBetween(rest[n-1], rest[n]) {
			continue
		}
		s.missed = 0
		if i > 0 {
			s.recent[i-1], s.recent[i] = s.recent[i], s.recent[i-1]
			return &s.recent[i-1]
		}
		return v
	}
	return nil
}

// endsBetween reports whether a value that ends with last is complete if next
// follows: true, and 1 but not the beginning of 12.
func endsBetween(last, next byte) bool {
	switch last {
	case '"', '}', ']':
		return true
	}
	switch next {
	case ',', '}', ']', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

const (
	// After missesInARow a place is looked at once in lookEvery times.
	missesInARow = 32
	lookEvery    = 8
)

// skip counts a look that is to come in missed, which is set to 0 when something
// is found. It returns true if nothing was found for so long that this look is to be
// left out: to look for what is different in each object, and to keep it, took a
// tenth of the time of a list.
func skip(missed *uint8) bool {
	if *missed++; *missed <= missesInARow {
		return false
	}
	if *missed < missesInARow+lookEvery {
		return true
	}
	*missed = missesInARow
	return false
}

// misses reports whether what was read and not found need not be kept, as nothing is
// ever found here.
func (s *site) misses() bool { return s != nil && skip(&s.missed) }

// found says that what comes here is worth keeping.
func (s *site) found() {
	if s != nil {
		s.missed = 0
	}
}

// add remembers a value, in the place of the one that was not found for longest. The
// text is copied.
func (s *site) add(encoded []byte, value siteValue) {
	if s == nil {
		return
	}
	if len(s.recent) < recentValues {
		s.recent = append(s.recent, siteValue{})
	}
	last := &s.recent[len(s.recent)-1]
	value.encoded = append(last.encoded[:0], encoded...)
	*last = value
}

// nextMember returns the member that came after this one the last time; nil: not
// known.
func (s *site) nextMember() *jsonValue {
	if s == nil {
		return nil
	}
	return s.next
}

func (s *site) setNext(member *jsonValue) {
	if s != nil {
		s.next = member
	}
}

// largestGuess bounds the memory that is made for elements before they come.
const largestGuess = 256

// guess returns how many elements an array or map will probably have.
func (s *site) guess() int {
	if s == nil {
		return 0
	}
	return min(s.count, largestGuess)
}

func (s *site) setCount(n int) {
	if s != nil {
		s.count = n
	}
}
