package garbage

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
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

// TestManyDependentsOfAnOwner: an owner that waits is looked at when each of its dependents goes, and not at all of them
// each time, which took 5,000 × 5,000 / 2 looks.
func TestManyDependentsOfAnOwner(t *testing.T) {
	const many = 5000
	synctest.Test(t, func(t *testing.T) {
		c := &Controller{graph: newGraph()}
		var err error
		c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "garbage"})
		if err != nil {
			t.Fatal(err)
		}
		owner := object{uid: "owner", name: "owner", deleting: true, foreground: true}
		c.graph.put(owner)
		dependent := func(i int, blocks bool) object {
			o := thing(types.UID(fmt.Sprint("d", i)), "owner")
			o.owners[0].BlockOwnerDeletion = &blocks
			return o
		}
		for i := range many {
			c.graph.put(dependent(i, true))
		}
		looks := 0
		for i := range many {
			blocked, tell := c.graph.blocked("owner")
			if looks += len(tell); !blocked {
				t.Fatalf("%d dependents do not block", many-i)
			}
			c.graph.remove(types.UID(fmt.Sprint("d", i)))
		}
		if looks != many {
			t.Errorf("%d looks at %d dependents", looks, many)
		}
		if c.blocked(owner) {
			t.Error("no dependent blocks")
		}
		c.graph.put(dependent(1, false))
		if c.blocked(owner) {
			t.Error("a dependent blocks that does not ask for it")
		}
		c.graph.put(dependent(1, true))
		if !c.blocked(owner) {
			t.Error("a dependent does not block that asks for it now")
		}
		time.Sleep(tellAgain)
		if _, tell := c.graph.blocked("owner"); len(tell) != 1 {
			t.Errorf("%d dependents are queued again", len(tell))
		}
	})
}

// TestBlockingIsOfAnyReference: an object may refer to its owner twice.
func TestBlockingIsOfAnyReference(t *testing.T) {
	twice := thing("a", "owner", "owner")
	twice.owners[0].BlockOwnerDeletion = new(true)
	g := newGraph()
	g.put(twice)
	g.put(twice)
	if blocked, _ := g.blocked("owner"); !blocked {
		t.Error("it does not block")
	}
	g.put(thing("a", "owner"))
	if blocked, _ := g.blocked("owner"); blocked {
		t.Error("it blocks after its reference does not")
	}
	g.put(twice)
	g.put(thing("a", "other"))
	g.put(thing("b", "owner"))
	if blocked, _ := g.blocked("owner"); blocked {
		t.Error("it blocks without a reference")
	}
}
