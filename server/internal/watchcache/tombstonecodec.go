package watchcache

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

// tombstone is a deletion as it is kept in the store.
type tombstone struct {
	key      string           // in the store
	revision storage.Revision // of the deletion
	written  storage.Revision // of the last state
	created  storage.Revision // of the object; 0 if that is not known
	residue  []byte           // of the last state, in its cached form
}

// tombstones are the deletions in (from, through], all of them.
type tombstones struct {
	from, through storage.Revision
	saved         time.Time // when the last was added
	list          []tombstone
}

// The form in the store: a byte that says which form it is, then, in deflate,
// from, through, the time in Unix seconds and the number of tombstones as unsigned
// varints, and of each tombstone its revision, written and created as unsigned
// varints, and key and residue with their lengths before them.
const tombstoneForm = 1

// maxTombstoneBytes is how long a batch may be when it is inflated: many times
// what is ever written.
const maxTombstoneBytes = 64 << 20

func (t *tombstones) encode() ([]byte, error) {
	var plain []byte
	for _, n := range []int64{int64(t.from), int64(t.through), t.saved.Unix(), int64(len(t.list))} {
		plain = binary.AppendUvarint(plain, uint64(n))
	}
	for i := range t.list {
		x := &t.list[i]
		for _, r := range []storage.Revision{x.revision, x.written, x.created} {
			plain = binary.AppendUvarint(plain, uint64(r))
		}
		plain = append(binary.AppendUvarint(plain, uint64(len(x.key))), x.key...)
		plain = append(binary.AppendUvarint(plain, uint64(len(x.residue))), x.residue...)
	}
	out := bytes.NewBuffer([]byte{tombstoneForm})
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

var errTombstones = errors.New("not a list of tombstones")

// decodeTombstones reads what encode wrote. The tombstones share no memory: one
// may be kept when the others have been forgotten.
func decodeTombstones(data []byte) (tombstones, error) {
	if len(data) == 0 || data[0] != tombstoneForm {
		return tombstones{}, errTombstones
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), maxTombstoneBytes+1))
	if err != nil {
		return tombstones{}, fmt.Errorf("%w: %w", errTombstones, err)
	}
	if len(plain) > maxTombstoneBytes {
		return tombstones{}, fmt.Errorf("%w: more than %d bytes", errTombstones, maxTombstoneBytes)
	}
	r := varints{data: plain}
	t := tombstones{from: r.revision(), through: r.revision(), saved: time.Unix(int64(r.next()), 0)}
	count := r.next()
	last := t.from
	for i := uint64(0); i < count && !r.failed; i++ {
		x := tombstone{revision: r.revision(), written: r.revision(), created: r.revision(), key: string(r.bytes()), residue: bytes.Clone(r.bytes())}
		if x.revision < last || x.revision <= t.from || x.revision > t.through || x.written >= x.revision || x.created > x.written {
			r.failed = true
		}
		last = x.revision
		t.list = append(t.list, x)
	}
	if r.failed || len(r.data) > 0 || t.from > t.through {
		return tombstones{}, errTombstones
	}
	return t, nil
}

// varints reads what encode appended. Once it has failed it reads zeros.
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
