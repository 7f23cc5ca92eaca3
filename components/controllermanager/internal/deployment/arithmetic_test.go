package deployment

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func rolling(replicas int32, surge, unavailable string) *appsv1.Deployment {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	d := &appsv1.Deployment{}
	d.Spec.Replicas = &replicas
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u},
	}
	return d
}

// sized makes a set; sets made later have later names and times.
func sized(age int, size, available int32) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("set-%d", age), CreationTimestamp: metav1.NewTime(time.Unix(int64(age), 0)),
	}}
	set.Spec.Replicas = &size
	set.Status.AvailableReplicas = available
	return set
}

func TestLimitsRoundAsKubernetesDoes(t *testing.T) {
	for _, c := range []struct {
		replicas           int32
		surge, unavailable string
		want               limits
	}{
		{10, "25%", "25%", limits{3, 2}},
		{4, "25%", "25%", limits{1, 1}},
		{3, "25%", "25%", limits{1, 0}},
		{1, "25%", "25%", limits{1, 0}},
		{10, "0", "0", limits{0, 1}},   // something must be allowed to move
		{10, "0%", "5%", limits{0, 1}}, // 5% rounds down to nothing
		{3, "2", "5", limits{2, 3}},    // no more can be missing than there are
		{0, "1", "1", limits{1, 0}},
		{0, "25%", "25%", limits{0, 0}},
		{5, "100%", "100%", limits{5, 5}},
	} {
		got, err := limitsOf(rolling(c.replicas, c.surge, c.unavailable))
		if err != nil || got != c.want {
			t.Errorf("%d replicas, surge %s, unavailable %s: %+v, %v; want %+v", c.replicas, c.surge, c.unavailable, got, err, c.want)
		}
	}
	if _, err := limitsOf(rolling(3, "many", "1")); err == nil {
		t.Error("a surge of \"many\" was accepted")
	}
	recreate := rolling(3, "1", "1")
	recreate.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	if got, err := limitsOf(recreate); err != nil || got != (limits{}) {
		t.Errorf("recreate has limits %+v, %v", got, err)
	}
}

func TestNewSetGrowsIntoTheSurge(t *testing.T) {
	for _, c := range []struct{ replicas, surge, size, total, want int32 }{
		{10, 3, 0, 10, 3},   // room for the surge
		{10, 3, 3, 13, 3},   // no room
		{10, 3, 3, 8, 8},    // room made by old sets that shrank
		{10, 3, 9, 10, 10},  // never beyond what is wanted
		{10, 3, 12, 12, 10}, // scaled down
		{10, 0, 0, 10, 0},
		{0, 0, 0, 0, 0},
	} {
		d := rolling(c.replicas, "0", "0")
		if got := newSetSize(d, limits{surge: c.surge}, c.size, c.total); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	recreate := rolling(7, "0", "0")
	recreate.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	if got := newSetSize(recreate, limits{}, 0, 7); got != 7 {
		t.Errorf("recreate makes %d of 7", got)
	}
}

func TestOldSetsShrink(t *testing.T) {
	type counts [2]int32 // size, available
	for _, c := range []struct {
		name     string
		replicas int32
		lim      limits
		current  *counts
		old      []counts
		want     []int32 // sizes of the old ones afterwards
	}{
		{"all available, one may miss", 10, limits{0, 1}, &counts{0, 0}, []counts{{10, 10}}, []int32{9}},
		{"new pods not available keep their room", 10, limits{1, 1}, &counts{1, 0}, []counts{{10, 10}}, []int32{9}},
		{"none may miss and none is new", 10, limits{1, 0}, &counts{1, 0}, []counts{{10, 10}}, []int32{10}},
		{"a new one is available", 10, limits{1, 0}, &counts{1, 1}, []counts{{10, 10}}, []int32{9}},
		{"dead ones first, oldest set first", 10, limits{0, 2}, &counts{0, 0}, []counts{{5, 5}, {5, 3}}, []int32{5, 3}},
		{"dead ones do not protect the living", 4, limits{0, 4}, &counts{0, 0}, []counts{{4, 2}}, []int32{0}},
		{"too few available already", 10, limits{0, 2}, &counts{0, 0}, []counts{{8, 7}}, []int32{8}},
		{"nothing new yet", 3, limits{1, 1}, nil, []counts{{3, 3}}, []int32{2}},
		{"the rest goes when all is new", 3, limits{1, 0}, &counts{3, 3}, []counts{{1, 1}, {1, 1}}, []int32{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var current *appsv1.ReplicaSet
			if c.current != nil {
				current = sized(100, c.current[0], c.current[1])
			}
			var old []*appsv1.ReplicaSet
			got := map[string]int32{}
			for i, o := range c.old {
				old = append(old, sized(i, o[0], o[1]))
				got[old[i].Name] = o[0]
			}
			for _, step := range shrinkOld(rolling(c.replicas, "0", "0"), c.lim, current, old) {
				got[step.set.Name] = step.to
			}
			for i, want := range c.want {
				if got[old[i].Name] != want {
					t.Errorf("old set %d becomes %d, want %d", i, got[old[i].Name], want)
				}
			}
		})
	}
}

// TestRolloutKeepsItsPromises plays rollouts over many strategies, with pods
// that become available one at a time, and watches both limits at each step.
func TestRolloutKeepsItsPromises(t *testing.T) {
	for replicas := int32(0); replicas <= 7; replicas++ {
		for _, surge := range []string{"0", "1", "25%", "100%"} {
			for _, unavailable := range []string{"0", "1", "25%", "100%"} {
				playRollout(t, rolling(replicas, surge, unavailable))
			}
		}
	}
}

func playRollout(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	lim, err := limitsOf(d)
	if err != nil {
		t.Fatal(err)
	}
	wanted := replicas(d)
	old, current := sized(1, wanted, wanted), sized(2, 0, 0)
	for step := 0; sizeOf(current) != wanted || sizeOf(old) != 0 || current.Status.AvailableReplicas != wanted; step++ {
		if step > 100 {
			t.Fatalf("%d replicas, %+v: stuck with %d old and %d new", wanted, lim, sizeOf(old), sizeOf(current))
		}
		grown := newSetSize(d, lim, sizeOf(current), sizeOf(current)+sizeOf(old))
		current.Spec.Replicas = &grown
		for _, s := range shrinkOld(d, lim, current, []*appsv1.ReplicaSet{old}) {
			to := s.to
			old.Spec.Replicas, old.Status.AvailableReplicas = &to, min(old.Status.AvailableReplicas, to)
		}
		if total := sizeOf(old) + sizeOf(current); total > wanted+lim.surge {
			t.Fatalf("%d replicas, %+v: %d pods", wanted, lim, total)
		}
		if available := old.Status.AvailableReplicas + current.Status.AvailableReplicas; available < wanted-lim.unavailable {
			t.Fatalf("%d replicas, %+v: only %d available", wanted, lim, available)
		}
		current.Status.AvailableReplicas = min(current.Status.AvailableReplicas+1, grown)
	}
}

func TestScalingInMidRolloutIsShared(t *testing.T) {
	noted := func(set *appsv1.ReplicaSet, desired, most int32) *appsv1.ReplicaSet {
		noteScale(set, desired, most)
		return set
	}
	for _, c := range []struct {
		name     string
		replicas int32
		lim      limits
		sizes    []int32 // oldest first
		most     int32   // noted at the last scaling
		want     []int32
	}{
		{"up in proportion", 20, limits{0, 0}, []int32{5, 5}, 10, []int32{10, 10}},
		{"down in proportion", 5, limits{0, 0}, []int32{8, 2}, 10, []int32{4, 1}},
		{"the remainder goes to the largest", 11, limits{0, 0}, []int32{6, 4}, 10, []int32{7, 4}},
		{"with surge", 15, limits{3, 0}, []int32{8, 5}, 13, []int32{11, 7}},
		{"to nothing", 0, limits{0, 0}, []int32{6, 4}, 10, []int32{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sets []*appsv1.ReplicaSet
			for i, size := range c.sizes {
				sets = append(sets, noted(sized(i, size, size), 10, c.most))
			}
			got := map[string]int32{}
			var total int32
			for _, step := range shares(rolling(c.replicas, "0", "0"), c.lim, sets) {
				got[step.set.Name] = step.to
				total += step.to
			}
			for i, want := range c.want {
				if got[sets[i].Name] != want {
					t.Errorf("set %d becomes %d, want %d", i, got[sets[i].Name], want)
				}
			}
			if c.replicas > 0 && total != c.replicas+c.lim.surge {
				t.Errorf("%d pods in all, want %d", total, c.replicas+c.lim.surge)
			}
		})
	}
}

func TestSurplusKeepsWhatCanBeRolledBackTo(t *testing.T) {
	set := func(revision string, size int32) *appsv1.ReplicaSet {
		s := sized(0, size, 0)
		s.Name, s.Annotations = "r"+revision, map[string]string{revisionAnnotation: revision}
		return s
	}
	d := rolling(1, "1", "0")
	limit := int32(2)
	d.Spec.RevisionHistoryLimit = &limit
	old := []*appsv1.ReplicaSet{set("10", 0), set("9", 0), set("2", 0), set("3", 1)}
	got := surplus(d, old)
	if len(got) != 1 || got[0].Name != "r2" {
		t.Errorf("deletes %v, want r2 only: r3 still has a pod", names(got))
	}
	d.Spec.RevisionHistoryLimit = nil
	if got := surplus(d, old); got != nil {
		t.Errorf("without a limit it deletes %v", names(got))
	}
}

func names(sets []*appsv1.ReplicaSet) (list []string) {
	for _, set := range sets {
		list = append(list, set.Name)
	}
	return list
}
