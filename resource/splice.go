package resource

import (
	"bytes"
	"fmt"
	"strconv"
)

const (
	metadataOpen = `"metadata":{`
	revisionOpen = `"resourceVersion":"`
)

// WithRevision makes the cached form from the stored one: the same JSON with
// metadata.resourceVersion in front of the other metadata. It costs one
// allocation for what Encode wrote. Values that a kube-apiserver wrote are
// understood too: protobuf is re-encoded, JSON in another member order put in ours.
// The result is new and stored stays as it is.
func (r *Resource) WithRevision(stored []byte, revision int64) ([]byte, error) {
	s := r.Stored()
	prefix := s.Prefix()
	if !bytes.HasPrefix(stored, prefix) || !bytes.HasPrefix(stored[len(prefix):], []byte(metadataOpen)) ||
		bytes.HasPrefix(stored[len(prefix)+len(metadataOpen):], []byte(revisionOpen)) {
		canonical, err := s.restore(stored)
		if err != nil {
			return nil, err
		}
		stored = canonical
	}
	head := len(prefix) + len(metadataOpen)
	const maxDigits = 20
	out := make([]byte, 0, len(stored)+len(revisionOpen)+maxDigits+len(`",`))
	out = append(out, stored[:head]...)
	out = append(out, revisionOpen...)
	out = strconv.AppendInt(out, revision, 10)
	out = append(out, '"')
	if head < len(stored) && stored[head] != '}' {
		out = append(out, ',')
	}
	return append(out, stored[head:]...), nil
}

// restore turns a value from the store that Encode did not write into what it
// would have written.
func (r *Resource) restore(value []byte) ([]byte, error) {
	if IsProtobuf(value) {
		obj, err := r.decodeStoredProtobuf(value)
		if err != nil {
			return nil, err
		}
		return r.Encode(obj)
	}
	kind, err := kindOf(value)
	if err != nil {
		return nil, fmt.Errorf("stored value of %s: %w", r.GroupResource(), err)
	}
	if want := r.GroupVersionKind(); kind != want {
		return nil, fmt.Errorf("stored value of %s is a %s, not a %s: rewrite it in that version with the server that wrote it", r.GroupResource(), kind, want)
	}
	return r.canonical(value, dropRevision)
}

// member is one member of an object, as it stands in the input.
type member struct {
	key        string
	rawKey     []byte // between its quotes
	value, end int    // where the value begins and ends
}

// members lists the members of the object that data consists of.
func members(data []byte) ([]member, error) {
	s := scanner{data: data}
	if err := s.expect('{'); err != nil {
		return nil, err
	}
	list := make([]member, 0, 8)
	for first := true; ; first = false {
		key, escaped, ok, err := s.member(first)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		m := member{rawKey: key}
		if m.key, err = text(key, escaped); err != nil {
			return nil, err
		}
		if _, err := s.next(); err != nil {
			return nil, err
		}
		m.value = s.pos
		if err := s.skip(); err != nil {
			return nil, err
		}
		m.end = s.pos
		list = append(list, m)
	}
	if _, err := s.next(); err == nil {
		return nil, fmt.Errorf("invalid JSON at byte %d: something follows the object", s.pos)
	}
	return list, nil
}

// canonical puts the members of an encoded object in order: kind, apiVersion,
// metadata and the others as they come; within metadata the resourceVersion
// first, or left out.
func (r *Resource) canonical(data []byte, rule revisionRule) ([]byte, error) {
	list, err := members(data)
	if err != nil {
		return nil, fmt.Errorf("encoded %s: %w", r.Kind, err)
	}
	out := make([]byte, 0, len(data)+len(r.Prefix())+len(metadataOpen)+2)
	out = append(out, r.Prefix()...)
	out = append(out, metadataOpen...)
	for _, m := range list {
		if m.key == "metadata" {
			if out, err = appendMetadata(out, data[m.value:m.end], rule); err != nil {
				return nil, fmt.Errorf("encoded %s: metadata: %w", r.Kind, err)
			}
		}
	}
	out = append(out, '}')
	for _, m := range list {
		switch m.key {
		case "kind", "apiVersion", "metadata":
			continue
		}
		out = append(out, ',')
		out = appendMember(out, data, m)
	}
	return append(out, '}'), nil
}

// appendMetadata appends the members of a metadata object, without braces.
func appendMetadata(out, metadata []byte, rule revisionRule) ([]byte, error) {
	list, err := members(metadata)
	if err != nil {
		return nil, err
	}
	start := len(out)
	if rule == keepRevision {
		for _, m := range list {
			if m.key == "resourceVersion" {
				out = appendMember(out, metadata, m)
			}
		}
	}
	for _, m := range list {
		value := metadata[m.value:m.end]
		if m.key == "resourceVersion" || m.key == "selfLink" || m.key == "creationTimestamp" && string(value) == "null" {
			continue
		}
		if len(out) > start {
			out = append(out, ',')
		}
		out = appendMember(out, metadata, m)
	}
	return out, nil
}

// appendMember appends one member with its key.
func appendMember(out, data []byte, m member) []byte {
	out = append(append(append(out, '"'), m.rawKey...), `":`...)
	return append(out, data[m.value:m.end]...)
}
