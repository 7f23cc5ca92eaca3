package resource

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/internal/jsonscan"
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

// IsCached reports whether WithRevision makes the cached form out of the stored one. It
// does not make anything of what Encode wrote.
func (r *Resource) IsCached(stored []byte, revision int64, cached []byte) bool {
	prefix, ok := r.Stored().prefixOf(stored)
	var metadata []byte
	if ok { // the prefix is within what is stored
		metadata, ok = bytes.CutPrefix(stored[prefix:], []byte(metadataOpen))
	}
	if !ok || bytes.HasPrefix(metadata, []byte(revisionOpen)) || bytes.HasPrefix(metadata, []byte("}")) {
		made, err := r.WithRevision(stored, revision)
		return err == nil && bytes.Equal(made, cached)
	}
	var buf [64]byte
	inserted := append(strconv.AppendInt(append(buf[:0], revisionOpen...), revision, 10), `",`...)
	head := len(stored) - len(metadata)
	return len(cached) == len(stored)+len(inserted) && bytes.Equal(cached[:head], stored[:head]) &&
		bytes.Equal(cached[head:head+len(inserted)], inserted) && bytes.Equal(cached[head+len(inserted):], metadata)
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
	if kind.GroupKind() == want.GroupKind() && kind != want && r.Upgrade != nil {
		obj, err := r.Upgrade(value, kind.Version)
		if err != nil {
			return nil, fmt.Errorf("stored value of %s in version %s: %w", r.GroupResource(), kind.Version, err)
		}
		return r.marshal(obj, dropRevision)
	}
	if kind != want && !r.isStoredAs(kind) {
		return nil, fmt.Errorf("stored value of %s is a %s, not a %s: rewrite it in that version with the server that wrote it", r.GroupResource(), kind, want)
	}
	canonical, err := r.canonical(value, dropRevision)
	if err != nil || !r.Mixed {
		return canonical, err
	}
	return markUnchecked(canonical), nil
}

// isStoredAs reports whether a value of the kind can be read as one of this version.
func (r *Resource) isStoredAs(kind schema.GroupVersionKind) bool {
	own := r.GroupVersionKind()
	return kind == own || kind.GroupKind() == own.GroupKind() && slices.Contains(r.StoredIn, kind.Version)
}

// A stored custom resource that Encode did not write has a space before its last
// brace in the cached form, where Encode never puts one. That is how readers know
// that another program wrote it, whose idea of the schema may be another one.

// markUnchecked adds the mark to an encoded object, which it may change.
func markUnchecked(canonical []byte) []byte {
	return append(canonical[:len(canonical)-1], " }"...)
}

// IsUnchecked reports whether the cached form of a custom resource is what another
// program wrote: unknown fields and malformed metadata may be in it.
func IsUnchecked(json []byte) bool { return bytes.HasSuffix(json, []byte(" }")) }

// SameJSON reports whether an object that has been encoded again is the cached one,
// marked as unchecked or not.
func SameJSON(encoded, cached []byte) bool {
	if !IsUnchecked(cached) {
		return bytes.Equal(encoded, cached)
	}
	end := len(cached) - len(" }")
	return len(encoded) == end+1 && bytes.Equal(encoded[:end], cached[:end]) && encoded[end] == '}'
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

// WithMembers returns an encoded object with those of its members that are named, in
// their order. json is not modified.
func WithMembers(json []byte, names []string) ([]byte, error) {
	list, err := members(json)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(m member) bool { return !slices.Contains(names, m.key) })
	size := len(`{}`)
	for _, m := range list {
		size += len(m.quotedKey) + len(`:,`) + m.end - m.value
	}
	out := append(make([]byte, 0, size), '{')
	for _, m := range list {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendMember(out, json, m)
	}
	return append(out, '}'), nil
}

// appendMember appends one member with its key.
func appendMember(out, data []byte, m member) []byte {
	out = append(append(out, m.quotedKey...), ':')
	return append(out, data[m.value:m.end]...)
}
