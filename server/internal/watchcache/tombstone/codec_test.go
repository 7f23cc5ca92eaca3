package tombstone

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func someBatch() batch {
	return batch{from: 3, through: 90, saved: time.Unix(1_700_000_000, 0), records: []record{
		{key: "/registry/pods/one/a", revision: 10, written: 9, created: 4, metadata: []byte(`{"metadata":{"resourceVersion":"9","name":"a"}}`)},
		{key: "/registry/pods/one/b", revision: 10, written: 7, metadata: []byte("anything")},
		{key: "/registry/minions/n", revision: 90, written: 1, created: 1, metadata: []byte{0}},
	}}
}

func TestBatchRoundTrip(t *testing.T) {
	for _, want := range []batch{someBatch(), {from: 5, through: 5, saved: time.Unix(0, 0)}} {
		data, err := want.encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeBatch(data); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		for cut := range data {
			if _, err := decodeBatch(data[:cut]); !errors.Is(err, errNoBatch) {
				t.Errorf("%d bytes of %d were accepted: %v", cut, len(data), err)
			}
		}
	}
}

func FuzzBatch(f *testing.F) {
	some := someBatch()
	data, err := some.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{formatVersion})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeBatch(data)
		if err != nil {
			return
		}
		last := got.from
		for _, x := range got.records {
			if x.revision < last || x.revision > got.through {
				t.Fatalf("a tombstone at %d follows %d in (%d, %d]", x.revision, last, got.from, got.through)
			}
			last = x.revision
		}
		again, err := got.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeBatch(again); err != nil || !reflect.DeepEqual(back, got) {
			t.Fatalf("%+v became %+v, %v", got, back, err)
		}
	})
}
