package deployment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// limits are how many pods a rollout may have above and miss below the
// wanted number.
type limits struct{ surge, unavailable int32 }

// limitsOf resolves the strategy's percentages: surge rounds up and
// unavailable down, and if both come to nothing one pod may be missing, for
// otherwise nothing could ever move. Outside a rolling update both are 0.
func limitsOf(d *appsv1.Deployment) (limits, error) {
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || d.Spec.Strategy.RollingUpdate == nil {
		return limits{}, nil
	}
	wanted := int(replicas(d))
	resolve := func(value *intstr.IntOrString, up bool) (int32, error) {
		n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(value, intstr.FromInt32(0)), wanted, up)
		return int32(max(n, 0)), err
	}
	surge, err := resolve(d.Spec.Strategy.RollingUpdate.MaxSurge, true)
	if err != nil {
		return limits{}, fmt.Errorf("maxSurge: %w", err)
	}
	unavailable, err := resolve(d.Spec.Strategy.RollingUpdate.MaxUnavailable, false)
	if err != nil {
		return limits{}, fmt.Errorf("maxUnavailable: %w", err)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return limits{surge, min(unavailable, int32(wanted))}, nil
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func sizeOf(set *appsv1.ReplicaSet) int32 {
	if set == nil {
		return 0
	}
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

// totals of several sets, which may hold nil.
func totalSize(sets []*appsv1.ReplicaSet) (n int32) {
	for _, set := range sets {
		n += sizeOf(set)
	}
	return n
}

func totalAvailable(sets []*appsv1.ReplicaSet) (n int32) {
	for _, set := range sets {
		if set != nil {
			n += set.Status.AvailableReplicas
		}
	}
	return n
}

// newSetSize is the size of the newest set at this point of a rollout: as
// many more as the surge has room for. size is its present one, total that of
// all sets with it.
func newSetSize(d *appsv1.Deployment, lim limits, size, total int32) int32 {
	wanted := replicas(d)
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || size > wanted {
		return wanted
	}
	room := wanted + lim.surge - total
	if room <= 0 {
		return size
	}
	return size + min(room, wanted-size)
}

// resize is a set and what its size should become.
type resize struct {
	set *appsv1.ReplicaSet
	to  int32
}

// shrinkOld says which old sets to shrink in a rolling update. First go pods
// that are not available anyway, then available ones as long as enough stay.
// current is the newest set, nil if there is none.
func shrinkOld(d *appsv1.Deployment, lim limits, current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) []resize {
	minAvailable := replicas(d) - lim.unavailable
	all := append(slices.Clone(old), current)
	notYet := int32(0)
	if current != nil {
		notYet = max(sizeOf(current)-current.Status.AvailableReplicas, 0)
	}
	// The new pods that are not available yet keep their room: if all of them
	// fail, the old ones must still be there.
	may := totalSize(all) - minAvailable - notYet
	if may <= 0 {
		return nil
	}
	sorted := slices.Clone(old)
	slices.SortStableFunc(sorted, byAge)
	steps := make([]resize, len(sorted))
	for i, set := range sorted {
		dead := min(max(sizeOf(set)-set.Status.AvailableReplicas, 0), may)
		may -= dead
		steps[i] = resize{set, sizeOf(set) - dead}
	}
	spare := totalAvailable(all) - minAvailable
	for i := range steps {
		if spare <= 0 {
			break
		}
		fewer := min(steps[i].to, spare)
		spare -= fewer
		steps[i].to -= fewer
	}
	return slices.DeleteFunc(steps, func(r resize) bool { return r.to == sizeOf(r.set) })
}

// shares distributes a changed total over the sets of a rollout that is under
// way, each by its part of the whole, so that scaling does not look like
// progress. What rounding leaves goes to the largest.
func shares(d *appsv1.Deployment, lim limits, active []*appsv1.ReplicaSet) []resize {
	allowed := int32(0)
	if replicas(d) > 0 {
		allowed = replicas(d) + lim.surge
	}
	change := allowed - totalSize(active)
	sorted := slices.Clone(active)
	slices.SortStableFunc(sorted, func(a, b *appsv1.ReplicaSet) int {
		if change > 0 { // of equal size, newer sets grow and older ones shrink
			return cmp.Or(cmp.Compare(sizeOf(b), sizeOf(a)), -byAge(a, b))
		}
		return cmp.Or(cmp.Compare(sizeOf(b), sizeOf(a)), byAge(a, b))
	})
	left := change
	steps := make([]resize, len(sorted))
	for i, set := range sorted {
		part := int32(0)
		if change != 0 {
			part = share(d, lim, set)
			if change > 0 {
				part = min(part, left)
			} else {
				part = max(part, left)
			}
		}
		left -= part
		steps[i] = resize{set, sizeOf(set) + part}
	}
	if len(steps) > 0 {
		steps[0].to += left
	}
	for i := range steps {
		steps[i].to = max(steps[i].to, 0)
	}
	return steps
}

// share is by how much a set grows when its deployment goes from the most
// pods noted at the set to the present most.
func share(d *appsv1.Deployment, lim limits, set *appsv1.ReplicaSet) int32 {
	size := sizeOf(set)
	if replicas(d) == 0 {
		return -size
	}
	before, ok := number(set, maxAnnotation)
	if !ok || before == 0 {
		before = d.Status.Replicas
	}
	if before == 0 {
		return 0
	}
	scaled := float64(size) * float64(replicas(d)+lim.surge) / float64(before)
	return int32(math.Floor(scaled+0.5)) - size
}

func byAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// complete reports whether all pods are new and enough of them available.
func complete(d *appsv1.Deployment, status *appsv1.DeploymentStatus) bool {
	wanted := replicas(d)
	return status.UpdatedReplicas == wanted && status.Replicas == wanted && status.AvailableReplicas == wanted &&
		status.ObservedGeneration >= d.Generation
}
