package replay

import (
	"fmt"

	"github.com/levelwire/levelwire/internal/jsonscan"
	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/storage"
)

// Layout says how the server over the Store keeps the objects of a resource: the prefix of
// their keys, and what makes the stored form of an object that was recorded (nil: it is
// the same). ok is false if the server does not serve the resource.
type Layout func(group, version, resource string) (prefix string, convert func(object []byte) ([]byte, error), ok bool)

// place is where one resource of the recording is in the store.
type place struct {
	prefix  string
	convert func([]byte) ([]byte, error)
	served  bool
}

// places are those of all resources of a recording, and the names of those that the
// server does not serve.
func places(resources []recording.Resource, layout Layout) (list []place, unserved []string) {
	for _, r := range resources {
		var p place
		p.prefix, p.convert, p.served = layout(r.Group, r.Version, r.Resource)
		if !p.served {
			unserved = append(unserved, fmt.Sprintf("%s (%s)", r, r.Version))
		}
		list = append(list, p)
	}
	return list, unserved
}

// value returns the stored form of an object. What cannot be converted is stored as it
// is: the server reports it, and serves everything else.
func (p *place) value(object []byte) []byte {
	if p.convert == nil {
		return withoutVersion(object)
	}
	stored, err := p.convert(object)
	if err != nil {
		return storage.Unreadable(&storage.UnreadableError{Reason: "the recorded object cannot be converted: " + err.Error(), Damaged: true})
	}
	return stored
}

// withoutVersion returns an object without metadata.resourceVersion, as servers store it: they add
// the version of the change, which for a deletion is another one than the object's. What cannot be
// scanned stays as it is, for the server to report.
func withoutVersion(object []byte) []byte {
	s := jsonscan.Scanner{Data: object}
	if !enter(&s, "metadata") {
		return object
	}
	for first := true; ; first = false {
		before := s.Pos // behind the brace, or the value of the member before
		key, ok, err := s.Member(first)
		if err != nil || !ok {
			return object
		}
		if _, err := s.Skip(); err != nil {
			return object
		}
		if string(key.Raw()) != "resourceVersion" {
			continue
		}
		end := s.Pos
		if first && s.Take(',') {
			end = s.Pos
		}
		return append(append(make([]byte, 0, len(object)), object[:before]...), object[end:]...)
	}
}

// enter moves a scanner behind the opening brace of a member of an object. It returns false if the
// text is none, or has no such member.
func enter(s *jsonscan.Scanner, name string) bool {
	if s.Expect('{') != nil {
		return false
	}
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil || !ok {
			return false
		}
		if string(key.Raw()) == name {
			return s.Expect('{') == nil
		}
		if _, err := s.Skip(); err != nil {
			return false
		}
	}
}

// event returns the store's event of an entry; false if it is none, or of a resource that
// is not served.
func event(list []place, e *recording.Entry) (storage.Event, bool) {
	if e.Type != recording.Set && e.Type != recording.Delete || !list[e.Resource].served {
		return storage.Event{}, false
	}
	p := &list[e.Resource]
	out := storage.Event{Key: p.prefix + e.Key, Revision: storage.Revision(e.Revision), Deleted: e.Type == recording.Delete}
	if !out.Deleted {
		out.Value = p.value(e.Value)
	}
	return out, true
}
