package state

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// Traits are what the filters of the tree know of an object: its name, each label
// with and without its value, and each selectable field with its value. Fields of
// custom resources are not among them: they may become selectable when the object is
// already there.
func Traits(res *resource.Resource) btree.Traits[*Object] {
	fields := !res.Stored().Mixed
	return func(to []uint64, o *Object) []uint64 {
		to = append(to, nameTrait(o.Attributes.Name))
		for _, l := range o.Attributes.Labels {
			to = append(to, labelTrait(l.Key), labelValueTrait(l.Key, l.Value))
		}
		if fields {
			for i, value := range o.Attributes.Fields {
				to = append(to, fieldTrait(i, value))
			}
		}
		return to
	}
}

// NewTraits returns Traits for a batch of changes: a state with the labels and fields
// of the one that it replaces brings nothing new.
func NewTraits(res *resource.Resource) func(to []uint64, o, replaced *Object) []uint64 {
	all := Traits(res)
	return func(to []uint64, o, replaced *Object) []uint64 {
		if replaced != nil && slices.Equal(o.Attributes.Labels, replaced.Attributes.Labels) && slices.Equal(o.Attributes.Fields, replaced.Attributes.Fields) {
			return to
		}
		return all(to, o)
	}
}

var traitSeed = maphash.MakeSeed()

// What is mixed into the hashes of traits that have no value of their own, and of
// fields, so that they differ from all others.
const (
	nameKind  = 0x9e3779b97f4a7c15
	labelKind = 0xbf58476d1ce4e5b9
	fieldKind = 0x94d049bb133111eb
)

func nameTrait(name string) uint64 { return mix(maphash.String(traitSeed, name), nameKind) }

func labelTrait(key string) uint64 { return mix(maphash.String(traitSeed, key), labelKind) }

func labelValueTrait(key, value string) uint64 {
	return mix(maphash.String(traitSeed, key), maphash.String(traitSeed, value))
}

func fieldTrait(index int, value string) uint64 {
	return mix(fieldKind+uint64(index), maphash.String(traitSeed, value))
}

// mix makes one hash of two, in which their order counts.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0xd6e8feb86659fd93, b^0xa0761d6478bd642f)
	return high ^ low
}

// maxAlternatives is how many values of a condition are worth asking a filter for:
// each is asked for by itself.
const maxAlternatives = 64

// wantedTraits returns, for each condition that an object can meet only by a trait,
// the traits that meet it. There are none if the selection has no such condition.
func (s *Selection) wantedTraits() [][]uint64 {
	var wanted [][]uint64
	if s.Name != "" {
		wanted = append(wanted, []uint64{nameTrait(s.Name)})
	}
	for i := range s.fields {
		if c := &s.fields[i]; !c.negate && !s.stored.Mixed {
			wanted = append(wanted, []uint64{fieldTrait(c.index, c.value)})
		}
	}
	for i := range s.labels {
		if traits := s.labels[i].traits(); traits != nil {
			wanted = append(wanted, traits)
		}
	}
	return wanted
}

// traits returns the traits of which an object has one if the condition holds; nil if
// it can hold without.
func (c *labelCondition) traits() []uint64 {
	switch c.operator {
	case selection.Equals, selection.In:
		if c.values == nil {
			return []uint64{labelValueTrait(c.key, c.single)}
		}
		if len(c.values) <= maxAlternatives {
			traits := make([]uint64, 0, len(c.values))
			for value := range c.values {
				traits = append(traits, labelValueTrait(c.key, value))
			}
			return traits
		}
		return []uint64{labelTrait(c.key)}
	case selection.Exists, selection.GreaterThan, selection.LessThan:
		return []uint64{labelTrait(c.key)}
	}
	return nil
}
