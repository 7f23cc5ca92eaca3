package state

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestClientsReadTombstoneMetadata: the tombstone metadata of a deleted object can
// be sent in every version of every built-in kind, in JSON, in protobuf and in a
// table, although members are missing that the kind requires. The types and their
// decoders are those that client-go and kubectl use.
func TestClientsReadTombstoneMetadata(t *testing.T) {
	for _, res := range builtin.Table().All() {
		t.Run(res.GroupVersionKind().String(), func(t *testing.T) {
			obj, err := res.Decode(t.Context(), storedMetadataOf(t, res))
			if err != nil {
				t.Fatal(err)
			}
			kept(t, res, obj)
			shown, err := res.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			read := res.New()
			if err := json.Unmarshal(shown, read); err != nil {
				t.Errorf("%s: %v", shown, err)
			}
			kept(t, res, read)
			if columns, row := builtin.Columns(res.GroupVersionKind()); row != nil && len(row(obj)) != len(columns) {
				t.Errorf("a row of %d cells for %d columns", len(row(obj)), len(columns))
			}
			message, err := res.AppendProtobuf(nil, shown)
			if errors.Is(err, resource.ErrNoProtobuf) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			read = res.New()
			if err := read.(interface{ Unmarshal([]byte) error }).Unmarshal(message); err != nil {
				t.Error(err)
			}
			kept(t, res, read)
		})
	}
}

// storedMetadataOf is the JSON of an object that was read from a tombstone.
func storedMetadataOf(t *testing.T, res *resource.Resource) []byte {
	t.Helper()
	stored := res.Stored()
	obj := stored.New()
	obj.SetName("it")
	obj.SetUID("some-uid")
	obj.SetLabels(map[string]string{"app": "web"})
	key := "it"
	if stored.Namespaced {
		obj.SetNamespace("ns")
		key = "ns/it"
	}
	obj.GetObjectKind().SetGroupVersionKind(stored.GroupVersionKind())
	value, err := stored.Encode(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Decoder(stored)(key, value, 7)
	if err != nil {
		t.Fatal(err)
	}
	read, err := NewTombstoneMetadata(stored, key, 7, 7, o.TombstoneMetadata(stored).JSON())
	if err != nil {
		t.Fatal(err)
	}
	return read.JSON()
}

// kept checks what every client needs to know of a deleted object.
func kept(t *testing.T, res *resource.Resource, obj resource.Object) {
	t.Helper()
	if obj.GetName() != "it" || (obj.GetNamespace() == "ns") != res.Namespaced || obj.GetUID() != "some-uid" ||
		obj.GetResourceVersion() != "7" || obj.GetLabels()["app"] != "web" {
		t.Errorf("%+v", obj)
	}
}
