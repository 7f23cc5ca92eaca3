package resource

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/levelwire/levelwire/server/internal/resource/jsonscan"
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
	prefix, ok := s.prefixOf(stored)
	if !ok || !bytes.HasPrefix(stored[prefix:], []byte(metadataOpen)) ||
		bytes.HasPrefix(stored[prefix+len(metadataOpen):], []byte(revisionOpen)) {
		canonical, err := s.restore(stored)
		if err != nil {
			return nil, err
		}
		stored = canonical
		prefix, _ = s.prefixOf(stored)
	}
	head := prefix + len(metadataOpen)
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

// prefixOf returns the length of what precedes the metadata in what Encode
// writes, if value begins like that.
func (r *Resource) prefixOf(value []byte) (length int, ok bool) {
	prefix := r.Prefix()
	if !bytes.HasPrefix(value, prefix) {
		return 0, false
	}
	if !r.Mixed {
		return len(prefix), true
	}
	version := bytes.IndexByte(value[len(prefix):], '"')
	length = len(prefix) + version + len(`",`)
	return length, version >= 0 && bytes.HasPrefix(value[length-1:], []byte{','})
}

// restore turns a value from the store that Encode did not write into what it
// would have written.
func (r *Resource) restore(value []byte) ([]byte, error) {
	if IsProtobuf(value) {
		obj, err := r.decodeStoredProtobuf(value)
		if err != nil {
			return nil, err
		}
		return r.marshal(obj, dropRevision)
	}
	kind, err := kindOf(value)
	if err != nil {
		return nil, fmt.Errorf("stored value of %s: %w", r.GroupResource(), err)
	}
	want := r.GroupVersionKind()
	if r.Mixed {
		want.Version = kind.Version
	}
	if kind != want {
		return nil, fmt.Errorf("stored value of %s is a %s, not a %s: rewrite it in that version with the server that wrote it", r.GroupResource(), kind, want)
	}
	return r.canonical(value, dropRevision)
}

// member is one member of an object, as it stands in the input.
type member struct {
	key        string
	quotedKey  []byte // as it is written
	value, end int    // where the value begins and ends
}

// members lists the members of the object that data consists of.
func members(data []byte) ([]member, error) {
	s := jsonscan.Scanner{Data: data}
	if err := s.Expect('{'); err != nil {
		return nil, err
	}
	list := make([]member, 0, 8)
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		m := member{quotedKey: key.Quoted}
		if m.key, err = key.Value(); err != nil {
			return nil, err
		}
		value, err := s.Skip()
		if err != nil {
			return nil, err
		}
		m.value, m.end = s.Pos-len(value), s.Pos
		list = append(list, m)
	}
	if !s.AtEnd() {
		return nil, fmt.Errorf("invalid JSON at byte %d: something follows the object", s.Pos)
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
	if out, err = r.appendPrefix(out, data, list); err != nil {
		return nil, err
	}
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

// appendPrefix appends what the encoded object begins with.
func (r *Resource) appendPrefix(out, data []byte, list []member) ([]byte, error) {
	out = append(out, r.Prefix()...)
	if !r.Mixed {
		return out, nil
	}
	for _, m := range list {
		if m.key != "apiVersion" {
			continue
		}
		version, ok := bytes.CutPrefix(data[m.value:m.end], []byte(`"`+r.Group+`/`))
		if !ok || bytes.IndexByte(version, '\\') >= 0 {
			return nil, fmt.Errorf("encoded %s: its apiVersion is %s, which is not of group %s", r.Kind, data[m.value:m.end], r.Group)
		}
		return append(append(out, version...), ','), nil
	}
	return nil, fmt.Errorf("encoded %s: it has no apiVersion", r.Kind)
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

// WithoutManagedFields returns an encoded object without its managedFields,
// which are a large part of many objects. An object without any is returned
// itself; json is not modified.
func WithoutManagedFields(json []byte) ([]byte, error) {
	top, err := members(json)
	if err != nil {
		return nil, err
	}
	for _, m := range top {
		if m.key != "metadata" {
			continue
		}
		metadata := json[m.value:m.end]
		list, err := members(metadata)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(m member) bool { return m.key == "managedFields" })
		if i < 0 {
			return json, nil
		}
		out := append(make([]byte, 0, len(json)), json[:m.value]...)
		out = append(out, '{')
		for j, kept := range list {
			if j == i {
				continue
			}
			if out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			out = appendMember(out, metadata, kept)
		}
		return append(append(out, '}'), json[m.end:]...), nil
	}
	return json, nil
}

// appendMember appends one member with its key.
func appendMember(out, data []byte, m member) []byte {
	out = append(append(out, m.quotedKey...), ':')
	return append(out, data[m.value:m.end]...)
}
