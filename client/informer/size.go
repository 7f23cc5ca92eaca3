package informer

// sampled bounds the objects that EstimateBytes encodes.
const sampled = 64

// EstimateBytes returns about how many bytes the objects of the cache take when
// they are encoded: their number times the mean of an evenly spaced sample.
// Decoded they take a small multiple of that. It is cheap enough for a metric:
// one pass over the cache, and at most 64 objects are encoded.
func (i *SharedInformer[T]) EstimateBytes() int64 {
	c, err := encodingOf[T]()
	if err != nil {
		return 0 // a type that is no pointer has no encoding
	}
	count := i.indexer.Len()
	stride := max(count/sampled, 1)
	sample := make([]T, 0, sampled+1)
	at := 0
	i.indexer.Range(func(_ string, obj T) bool {
		if at%stride == 0 {
			sample = append(sample, obj)
		}
		at++
		return len(sample) <= sampled
	})
	var total, encoded int64
	var buffer []byte
	for _, obj := range sample {
		if buffer, err = c.append(buffer[:0], obj); err == nil {
			total += int64(len(buffer))
			encoded++
		}
	}
	if encoded == 0 {
		return 0
	}
	return total * int64(count) / encoded
}
