package read

// Extent returns how many objects a scope has in the cache at this moment, and about how
// many bytes of JSON. It reads none of them: the index has their number, and their sizes
// are taken to be the average. Both are 0 while the cache is being filled.
func (r *Reader) Extent(scope Scope) (objects int, size int64) {
	cache, err := r.filledCache(scope.Resource)
	if err != nil {
		return 0, 0
	}
	snapshot := cache.Current()
	all := snapshot.Len()
	objects = all
	if prefix := scope.keyPrefix(); prefix != "" {
		objects = snapshot.Count(prefix, "")
	}
	if all == 0 {
		return 0, 0
	}
	return objects, cache.ObjectBytes() * int64(objects) / int64(all)
}
