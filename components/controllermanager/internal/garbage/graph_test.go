package garbage

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func thing(uid types.UID, owners ...types.UID) object {
	o := object{uid: uid, name: string(uid)}
	for _, owner := range owners {
		o.owners = append(o.owners, metav1.OwnerReference{UID: owner})
	}
	return o
}

func uids(objects []object) (list []types.UID) {
	for _, o := range objects {
		list = append(list, o.uid)
	}
	slices.Sort(list)
	return list
}

func TestGraphInAnyOrder(t *testing.T) {
	things := []object{thing("owner"), thing("a", "owner"), thing("b", "owner", "other")}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		g := newGraph()
		for _, i := range order {
			g.put(things[i])
		}
		if got := uids(g.dependents("owner")); !slices.Equal(got, []types.UID{"a", "b"}) {
			t.Errorf("order %v: dependents %v", order, got)
		}
		if _, ok := g.get("other"); ok {
			t.Errorf("order %v: an owner that no event has shown is there", order)
		}
		dependents, _ := g.remove("owner")
		slices.Sort(dependents)
		if !slices.Equal(dependents, []types.UID{"a", "b"}) {
			t.Errorf("order %v: the owner leaves %v behind", order, dependents)
		}
	}
}

func TestGraphFollowsReferences(t *testing.T) {
	g := newGraph()
	g.put(thing("x"))
	g.put(thing("y"))
	g.put(thing("a", "x"))
	affected := g.put(thing("a", "y"))
	slices.Sort(affected)
	if !slices.Equal(affected, []types.UID{"x", "y"}) {
		t.Errorf("a change of owner concerns %v", affected)
	}
	if len(g.dependents("x")) != 0 || len(g.dependents("y")) != 1 {
		t.Error("the dependent is not where its reference points")
	}
}

func TestGraphForgetsEverything(t *testing.T) {
	g := newGraph()
	g.put(thing("owner"))
	g.put(thing("a", "owner", "never-seen"))
	g.remove("owner")
	g.remove("a")
	g.remove("a")
	if len(g.nodes) != 0 {
		t.Errorf("%d nodes are left of nothing", len(g.nodes))
	}
}

// TestManyOwners: the owners of an object are looked up among those of its next state. When each was compared with each,
// this took 10,000,000,000 comparisons.
func TestManyOwners(t *testing.T) {
	const many = 100_000
	owners := func(from, to int) (refs []metav1.OwnerReference) {
		for i := from; i < to; i++ {
			refs = append(refs, metav1.OwnerReference{UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))})
		}
		return refs
	}
	g := newGraph()
	g.put(object{uid: "o", owners: owners(0, many)})
	g.put(object{uid: "o", owners: owners(many/2, many+many/2)})
	if len(g.nodes) != many+1 {
		t.Errorf("%d objects are known", len(g.nodes))
	}
	for i, want := range map[int]int{0: 0, many/2 - 1: 0, many / 2: 1, many: 1} {
		if got := len(g.dependents(owners(i, i+1)[0].UID)); got != want {
			t.Errorf("owner %d has %d dependents", i, got)
		}
	}
}
