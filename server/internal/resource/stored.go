package resource

// StoredResources returns what has a cache: each stored resource once, those of
// custom resources, which are not served themselves, included.
func StoredResources(served []*Resource) []*Resource {
	var list []*Resource
	seen := map[*Resource]bool{}
	for _, res := range served {
		if stored := res.Stored(); !seen[stored] {
			seen[stored] = true
			list = append(list, stored)
		}
	}
	return list
}
