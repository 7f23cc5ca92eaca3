package resource

import (
	"bytes"
	"fmt"
	"strconv"
)

// Received makes the cached form of an object from the JSON in which another API server
// has sent it, in the resource's own version, and returns the resourceVersion that the
// object carries. What a Levelwire server has sent is taken as it is, without a copy, so
// the result may share sent. Items of lists may lack kind and apiVersion. It fails if
// the object is of another kind, or if its resourceVersion is not a number that fits.
func (r *Resource) Received(sent []byte) (json []byte, revision int64, err error) {
	switch {
	case bytes.HasPrefix(sent, r.Prefix()) && !r.Mixed:
		json = sent
	case bytes.HasPrefix(sent, []byte("{"+metadataOpen+revisionOpen)):
		json = append(append(make([]byte, 0, len(r.Prefix())+len(sent)), r.Prefix()...), sent[1:]...)
	}
	if revision, ok := r.receivedRevision(json); ok {
		return json, revision, nil
	}
	if err := r.checkKind(sent); err != nil {
		return nil, 0, err
	}
	if json, err = r.canonical(sent, keepRevision); err != nil {
		return nil, 0, err
	}
	revision, ok := r.receivedRevision(json)
	if !ok {
		return nil, 0, fmt.Errorf("a %s has no resourceVersion that is a number from 1 on and fits 63 bits", r.Kind)
	}
	return json, revision, nil
}

// receivedRevision reads the resourceVersion of a cached form. ok is false if it is not
// where the cached form has it.
func (r *Resource) receivedRevision(json []byte) (revision int64, ok bool) {
	rest, ok := bytes.CutPrefix(json, r.Prefix())
	if !ok {
		return 0, false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(metadataOpen+revisionOpen)); !ok {
		return 0, false
	}
	end := bytes.IndexByte(rest, '"')
	if end <= 0 || rest[0] == '0' {
		return 0, false
	}
	revision, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	return revision, err == nil && revision > 0
}

// checkKind refuses an object that says that it is of another kind.
func (r *Resource) checkKind(json []byte) error {
	list, err := members(json)
	if err != nil {
		return fmt.Errorf("a received %s: %w", r.Kind, err)
	}
	for _, m := range list {
		want := ""
		switch m.key {
		case "kind":
			want = r.Kind
		case "apiVersion":
			want = r.GroupVersion().String()
		default:
			continue
		}
		if got := string(json[m.value:m.end]); got != strconv.Quote(want) {
			return fmt.Errorf("a received object has %s %s, want %q", m.key, got, want)
		}
	}
	return nil
}

// Unconverted returns the resource as one whose objects come in its own version from
// another server, and are cached as they come, below storePrefix. It offers verbs. Fields
// that are defined by those of a stored version are left out.
func (r *Resource) Unconverted(storePrefix string, verbs []string) *Resource {
	own := &Resource{
		Group: r.Group, Version: r.Version, Kind: r.Kind, ListKind: r.ListKind, Plural: r.Plural, Singular: r.Singular,
		ShortNames: r.ShortNames, Categories: r.Categories, Namespaced: r.Namespaced, Verbs: verbs, StorePrefix: storePrefix,
		New: r.New, NewList: r.NewList, Columns: r.Columns, Row: r.Row, Status: r.Status, Scale: r.Scale, Strategy: r.Strategy, FieldLabels: r.FieldLabels,
	}
	for _, field := range r.Fields {
		if len(field.Paths) > 0 {
			field.Stored = ""
			own.Fields = append(own.Fields, field)
		}
	}
	return own
}
