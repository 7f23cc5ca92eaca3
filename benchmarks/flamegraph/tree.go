package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/pprof/profile"
)

// frame is a function as it was called by the frame above it.
type frame struct {
	name  string
	value int64 // nanoseconds, callees included
	kids  map[string]*frame
}

// tree adds up the samples by their stacks, root first.
func tree(p *profile.Profile) *frame {
	last := len(p.SampleType) - 1 // of a CPU profile: nanoseconds, after the number of samples
	root := &frame{name: "all"}
	for _, s := range p.Sample {
		root.value += s.Value[last]
		at := root
		for _, location := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(location.Line) { // inlined calls: the caller is last
				at = at.kid(line.Function.Name)
				at.value += s.Value[last]
			}
		}
	}
	return root
}

func (f *frame) kid(name string) *frame {
	if f.kids == nil {
		f.kids = map[string]*frame{}
	}
	k := f.kids[name]
	if k == nil {
		k = &frame{name: name}
		f.kids[name] = k
	}
	return k
}

// order lists the callees by name, so that two pictures can be compared.
func (f *frame) order() []*frame {
	return slices.SortedFunc(maps.Values(f.kids), func(a, b *frame) int { return cmp.Compare(a.name, b.name) })
}

// depth is how many rows the frames of at least least nanoseconds take.
func (f *frame) depth(least int64) int {
	deepest := 0
	for _, k := range f.kids {
		if k.value >= least {
			deepest = max(deepest, k.depth(least))
		}
	}
	return deepest + 1
}
