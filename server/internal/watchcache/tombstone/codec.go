package tombstone

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// record is a tombstone in the store.
type record struct {
	key      string           // in the store
	revision storage.Revision // of the deletion
	written  storage.Revision // of the last state
	created  storage.Revision // of the object; 0 if that is not known
	metadata []byte           // tombstone metadata of the last state, in its cached form
}

// batch holds all deletions in (from, through].
type batch struct {
	from, through storage.Revision
	saved         time.Time // when the last record was added
	records       []record
}

// formatVersion is the first byte of a batch in the store. The rest is
// compressed with deflate: from, through, the time in Unix seconds and the number
// of records as unsigned varints, and of each record its revision, written and
// created as unsigned varints, and key and metadata with their lengths before
// them.
const formatVersion = 1

// maxInflatedBytes is how long a batch may be when it is inflated: many times
// what a Writer writes.
const maxInflatedBytes = 64 << 20

func (b *batch) encode() ([]byte, error) {
	var plain []byte
	for _, n := range []int64{int64(b.from), int64(b.through), b.saved.Unix(), int64(len(b.records))} {
		plain = binary.AppendUvarint(plain, uint64(n))
	}
	for i := range b.records {
		r := &b.records[i]
		for _, n := range []storage.Revision{r.revision, r.written, r.created} {
			plain = binary.AppendUvarint(plain, uint64(n))
		}
		plain = append(binary.AppendUvarint(plain, uint64(len(r.key))), r.key...)
		plain = append(binary.AppendUvarint(plain, uint64(len(r.metadata))), r.metadata...)
	}
	out := bytes.NewBuffer([]byte{formatVersion})
	w, err := flate.NewWriter(out, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var errNoBatch = errors.New("not a batch of tombstones")

// decodeBatch reads what encode wrote. The records share no memory: one may be
// kept when the others have been dropped.
func decodeBatch(data []byte) (batch, error) {
	if len(data) == 0 || data[0] != formatVersion {
		return batch{}, errNoBatch
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), maxInflatedBytes+1))
	if err != nil {
		return batch{}, fmt.Errorf("%w: %w", errNoBatch, err)
	}
	if len(plain) > maxInflatedBytes {
		return batch{}, fmt.Errorf("%w: more than %d bytes", errNoBatch, maxInflatedBytes)
	}
	v := varints{data: plain}
	b := batch{from: v.revision(), through: v.revision(), saved: time.Unix(int64(v.next()), 0)}
	count := v.next()
	last := b.from
	for i := uint64(0); i < count && !v.failed; i++ {
		r := record{revision: v.revision(), written: v.revision(), created: v.revision(), key: string(v.bytes()), metadata: bytes.Clone(v.bytes())}
		if r.revision < last || r.revision <= b.from || r.revision > b.through || r.written >= r.revision || r.created > r.written {
			v.failed = true
		}
		last = r.revision
		b.records = append(b.records, r)
	}
	if v.failed || len(v.data) > 0 || b.from > b.through {
		return batch{}, errNoBatch
	}
	return b, nil
}

// varints reads what encode appended. After a failure it reads zeros.
type varints struct {
	data   []byte
	failed bool
}

func (v *varints) next() uint64 {
	n, size := binary.Uvarint(v.data)
	if size <= 0 || n > 1<<62 {
		v.failed, v.data = true, nil
		return 0
	}
	v.data = v.data[size:]
	return n
}

func (v *varints) revision() storage.Revision { return storage.Revision(v.next()) }

func (v *varints) bytes() []byte {
	n := v.next()
	if n > uint64(len(v.data)) {
		v.failed, v.data = true, nil
		return nil
	}
	out := v.data[:n:n]
	v.data = v.data[n:]
	return out
}
