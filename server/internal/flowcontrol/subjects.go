package flowcontrol

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// subjectIndex finds the schemas that have a rule for a user: most have none. The schemas
// are in the order of matching in each list.
type subjectIndex struct {
	everyone        []int32
	users, groups   map[string][]int32
	accountPrefixes map[string][]int32
}

func newSubjectIndex() subjectIndex {
	return subjectIndex{users: map[string][]int32{}, groups: map[string][]int32{}, accountPrefixes: map[string][]int32{}}
}

// add adds a schema, which comes after all that have been added.
func (x *subjectIndex) add(schema int32, rules []rule) {
	add := func(list []int32) []int32 {
		if n := len(list); n > 0 && list[n-1] == schema {
			return list
		}
		return append(list, schema)
	}
	for i := range rules {
		r := &rules[i]
		if r.everyone {
			x.everyone = add(x.everyone)
		}
		for user := range r.users {
			x.users[user] = add(x.users[user])
		}
		for group := range r.groups {
			x.groups[group] = add(x.groups[group])
		}
		for prefix := range r.accountPrefixes {
			x.accountPrefixes[prefix] = add(x.accountPrefixes[prefix])
		}
	}
}

// maxLists is how many lists candidates merge. The last one is that of all groups that the
// others are not about.
const maxLists = 12

// candidates are the schemas for a user, in the order of matching.
type candidates struct {
	lists [maxLists][]int32
	n     int
}

func (x *subjectIndex) of(user *auth.User) candidates {
	var c candidates
	c.add(x.everyone)
	c.add(x.users[user.Name])
	if i := strings.LastIndexByte(user.Name, ':'); i >= 0 {
		c.add(x.accountPrefixes[user.Name[:i+1]])
	}
	var more sets.Set[int32]
	for _, group := range user.Groups {
		switch list := x.groups[group]; {
		case len(list) == 0:
		case c.n < maxLists-1:
			c.add(list)
		default: // few users are in so many groups with rules
			if more == nil {
				more = sets.Set[int32]{}
			}
			more.Insert(list...)
		}
	}
	if more != nil {
		c.add(sets.List(more))
	}
	return c
}

// add adds one of maxLists lists.
func (c *candidates) add(list []int32) {
	if len(list) > 0 {
		c.lists[c.n] = list
		c.n++
	}
}

// next returns the next schema, each once; -1 after the last.
func (c *candidates) next() int32 {
	least := int32(math.MaxInt32)
	for i := range c.n {
		if list := c.lists[i]; len(list) > 0 {
			least = min(least, list[0])
		}
	}
	if least == math.MaxInt32 {
		return -1
	}
	for i := range c.n {
		for len(c.lists[i]) > 0 && c.lists[i][0] == least {
			c.lists[i] = c.lists[i][1:]
		}
	}
	return least
}
