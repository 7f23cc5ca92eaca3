package fieldmanager

import (
	"bytes"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxDecoded bounds how many sets are remembered, and maxDecodedBytes how long
// what they stand for may be: the sets take several times as much.
const (
	maxDecoded      = 256
	maxDecodedBytes = 16 << 10
)

// decodedSets remembers the sets that FieldsV1 stands for. Objects of one workload,
// as the pods of a controller are, have the same entries, and decoding one costs
// more than all else that a small change does.
type decodedSets struct {
	mu   sync.RWMutex
	sets map[string]*fieldpath.Set
}

var decoded decodedSets

// of decodes FieldsV1. The set is shared: it, and what operations on it return,
// must not be inserted into.
func (d *decodedSets) of(raw []byte) (*fieldpath.Set, error) {
	d.mu.RLock()
	set, ok := d.sets[string(raw)]
	d.mu.RUnlock()
	if ok {
		return set, nil
	}
	set = &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
		return nil, err
	}
	if len(raw) > maxDecodedBytes {
		return set, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sets == nil || len(d.sets) >= maxDecoded {
		d.sets = make(map[string]*fieldpath.Set, maxDecoded)
	}
	d.sets[string(raw)] = set
	return set, nil
}
