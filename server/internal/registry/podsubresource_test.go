package registry_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	resourceapi "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/registry/pod"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

func binding(name, node string) *corev1.Binding {
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"by": "test"}},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
}

func TestBindOnce(t *testing.T) {
	f := newFixture(t)
	created := f.create(t, "pods", newPod("p", "")).Object
	r := f.of(t, "pods")
	wrong := binding("p", "n")
	wrong.UID = "other"
	_, err := pod.Bind(t.Context(), r, "default", "p", wrong, registry.WriteOptions{})
	wantStatus(t, "another pod of that name", err, 409, metav1.StatusReasonConflict, "Precondition failed: UID")
	_, err = pod.Bind(t.Context(), r, "default", "p", binding("p", ""), registry.WriteOptions{})
	wantStatus(t, "no node", err, 422, metav1.StatusReasonInvalid, "target.name")
	_, err = pod.Bind(t.Context(), r, "default", "p", binding("p", "Bad Name"), registry.WriteOptions{})
	wantStatus(t, "no node can have that name", err, 422, metav1.StatusReasonInvalid, "target.name")
	odd := binding("p", "n")
	odd.Target.Kind = "Minion"
	_, err = pod.Bind(t.Context(), r, "default", "p", odd, registry.WriteOptions{})
	wantStatus(t, "not a node", err, 422, metav1.StatusReasonInvalid, "target.kind")

	right := binding("p", "n")
	right.UID = created.GetUID()
	result, err := pod.Bind(t.Context(), r, "default", "p", right, registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := result.Object.(*corev1.Pod)
	if got.Spec.NodeName != "n" || got.Annotations["by"] != "test" || got.Generation != created.GetGeneration() {
		t.Errorf("bound pod: node %q, annotations %v, generation %d", got.Spec.NodeName, got.Annotations, got.Generation)
	}
	if c := got.Status.Conditions; len(c) != 1 || c[0].Type != corev1.PodScheduled || c[0].Status != corev1.ConditionTrue || c[0].ObservedGeneration != 0 || !c[0].LastTransitionTime.Time.Equal(f.clock.Now()) {
		t.Errorf("conditions %+v", c)
	}
	_, err = pod.Bind(t.Context(), r, "default", "p", binding("p", "m"), registry.WriteOptions{})
	wantStatus(t, "bound already", err, 409, metav1.StatusReasonConflict, `pod p is already assigned to node "n"`)
	if _, err := r.Delete(t.Context(), "default", "p", nil); err != nil {
		t.Fatal(err)
	}
	_, err = pod.Bind(t.Context(), r, "default", "p", binding("p", "m"), registry.WriteOptions{})
	wantStatus(t, "being deleted", err, 409, metav1.StatusReasonConflict, "pod p is being deleted, cannot be assigned to a host")
	_, err = pod.Bind(t.Context(), r, "default", "none", binding("none", "m"), registry.WriteOptions{})
	wantStatus(t, "no pod", err, 404, metav1.StatusReasonNotFound, "not found")
}

// TestBindingEndsANomination: a pod that has waited for others to make room keeps no trace of that.
func TestBindingEndsANomination(t *testing.T) {
	_, put := builtinFixture(t)
	r := put(builtin.Table().Lookup("", "v1", "pods"), func(obj resource.Object) {
		obj.(*corev1.Pod).Status = corev1.PodStatus{NominatedNodeName: "m", Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, ObservedGeneration: 1, Reason: "Unschedulable", Message: "m"},
		}}
	})
	result, err := pod.Bind(t.Context(), r, "default", "a", binding("a", "n"), registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := result.Object.(*corev1.Pod).Status
	if c := status.Conditions[0]; status.NominatedNodeName != "" || c.Status != corev1.ConditionTrue || c.ObservedGeneration != 0 || c.Reason != "" || c.Message != "" {
		t.Errorf("bound pod: %+v", status)
	}
}

func TestBindersRace(t *testing.T) {
	f := newFixture(t)
	f.create(t, "pods", newPod("p", ""))
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for _, node := range []string{"a", "b", "c", "d", "e", "f"} {
		wg.Go(func() {
			_, err := pod.Bind(t.Context(), f.of(t, "pods"), "default", "p", binding("p", node), registry.WriteOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !apierrors.IsConflict(err) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d schedulers bound the pod", won)
	}
}

func TestEvictionTakesFromTheBudget(t *testing.T) {
	f := newFixture(t)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	f.create(t, "poddisruptionbudgets", budget)
	allow := func(allowed int32, observed int64) {
		t.Helper()
		if _, err := f.of(t, "poddisruptionbudgets").UpdateStatus(t.Context(), "default", "web", changing(func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptionsAllowed, b.Status.ObservedGeneration = allowed, observed
		}), registry.UpdateOptions{Unconditional: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "pending"} {
		f.create(t, "pods", newPod(name, "n"))
		phase := corev1.PodRunning
		if name == "pending" {
			phase = corev1.PodPending
		}
		if _, err := f.of(t, "pods").UpdateStatus(t.Context(), "default", name, changing(func(p *corev1.Pod) { p.Status.Phase = phase }), registry.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	evict := func(name string) error {
		_, err := pod.Evict(t.Context(), f.of(t, "pods"), "default", name, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}, registry.WriteOptions{})
		return err
	}
	wantStatus(t, "not looked at yet", evict("a"), 429, metav1.StatusReasonTooManyRequests, "violate the pod's disruption budget")
	allow(1, 1)
	if err := evict("a"); err != nil {
		t.Errorf("the allowed eviction: %v", err)
	}
	err := evict("b")
	wantStatus(t, "none left", err, 429, metav1.StatusReasonTooManyRequests, "violate the pod's disruption budget")
	if !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("no cause in %v", err)
	}
	if err := evict("pending"); err != nil {
		t.Errorf("a pod that never started: %v", err)
	}
	wantStatus(t, "no pod", evict("none"), 404, metav1.StatusReasonNotFound, "not found")
	evicted := f.current(t, "pods", "default", "a").(*corev1.Pod)
	if c := evicted.Status.Conditions; len(c) != 1 || c[0].Type != corev1.DisruptionTarget || c[0].Reason != "EvictionByEvictionAPI" {
		t.Errorf("the evicted pod does not say why it ends: %+v", c)
	}
	for _, entry := range evicted.ManagedFields {
		if entry.Manager == registry.ServerManager {
			t.Errorf("the server owns %s of the evicted pod", entry.FieldsV1)
		}
	}
	if b := f.current(t, "poddisruptionbudgets", "default", "web"); b == nil {
		t.Error("no budget")
	}
}

func TestPodSubresourcesChangeOnlyTheirPart(t *testing.T) {
	f := newFixture(t)
	cpu := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resourceapi.MustParse(amount)}}
	}
	small := newPod("p", "")
	small.Spec.Containers[0].Resources = cpu("1")
	f.create(t, "pods", small)
	everything := changing(func(p *corev1.Pod) {
		p.Labels = map[string]string{"changed": "yes"}
		p.Spec.NodeName = "elsewhere"
		p.Spec.Containers[0].Image = "other"
		p.Spec.Containers[0].Resources = cpu("2")
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	})
	for _, test := range []struct {
		subresource, cpu string
		ephemeral        int
	}{{"ephemeralcontainers", "1", 1}, {"resize", "2", 1}} {
		result, err := f.of(t, "pods").UpdateSubresource(t.Context(), "default", "p", test.subresource, everything, registry.UpdateOptions{})
		if err != nil {
			t.Fatalf("%s: %v", test.subresource, err)
		}
		p := result.Object.(*corev1.Pod)
		if p.Spec.NodeName != "" || p.Spec.Containers[0].Image != "i" || p.Labels["changed"] != "" {
			t.Errorf("%s changed more than its part: %+v", test.subresource, p.Spec)
		}
		if got := len(p.Spec.EphemeralContainers); got != test.ephemeral {
			t.Errorf("%s: %d ephemeral containers", test.subresource, got)
		}
		if got := p.Spec.Containers[0].Resources.Requests.Cpu().String(); got != test.cpu {
			t.Errorf("%s: the container requests %s, want %s", test.subresource, got, test.cpu)
		}
	}
	patch, err := patch.Parse(types.MergePatchType, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.of(t, "pods").PatchSubresource(t.Context(), "default", "p", "nonsense", patch, registry.PatchOptions{})
	wantStatus(t, "unknown subresource", err, 400, metav1.StatusReasonBadRequest, "no subresource")
	_, err = f.of(t, "pods").UpdateSubresource(t.Context(), "default", "p", "nonsense", func(o resource.Object) (resource.Object, error) { return o, nil }, registry.UpdateOptions{})
	wantStatus(t, "unknown subresource", err, 400, metav1.StatusReasonBadRequest, "no subresource")
}

// TestResizeOfOtherContainers: what a resize may not change is refused, not left out.
func TestResizeOfOtherContainers(t *testing.T) {
	_, put := builtinFixture(t)
	r := put(builtin.Table().Lookup("", "v1", "pods"), func(obj resource.Object) {
		obj.(*corev1.Pod).Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	})
	for want, change := range map[string]func(*corev1.Pod){
		"containers may not be added or removed on resize": func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "more", Image: "i"})
		},
		"containers may not be renamed or reordered on resize": func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" },
	} {
		_, err := r.UpdateSubresource(t.Context(), "default", "a", "resize", changing(change), registry.UpdateOptions{})
		wantStatus(t, want, err, 422, metav1.StatusReasonInvalid, want)
	}
}

// TestResizeWithoutContainers: what the containers share stays as it was if none is sent, and is not made
// up from them.
func TestResizeWithoutContainers(t *testing.T) {
	_, put := builtinFixture(t)
	r := put(builtin.Table().Lookup("", "v1", "pods"), func(obj resource.Object) {
		resizable(obj)
		obj.(*corev1.Pod).Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resourceapi.MustParse("2")}}
	})
	const removed = "pod-level resource"
	for name, test := range map[string]struct {
		sent *corev1.ResourceRequirements
		want bool // that something of the pod is removed
	}{
		"nothing":  {nil, false},
		"a limit":  {&corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resourceapi.MustParse("3"), "memory": resourceapi.MustParse("1Gi")}}, false},
		"no limit": {&corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resourceapi.MustParse("1"), "memory": resourceapi.MustParse("1Gi")}}, true},
	} {
		_, err := r.UpdateSubresource(t.Context(), "default", "a", "resize", changing(func(p *corev1.Pod) {
			p.Spec.Containers, p.Spec.Resources = nil, test.sent
		}), registry.UpdateOptions{})
		wantStatus(t, name, err, 422, metav1.StatusReasonInvalid, "containers may not be added or removed on resize")
		if got := strings.Contains(fmt.Sprint(err), removed); got != test.want {
			t.Errorf("%s: %v, want %t of %q", name, err, test.want, removed)
		}
	}
}

// TestResizeOfAHook: what a mutating hook changes besides what is resized falls away, as of what a client
// sends.
func TestResizeOfAHook(t *testing.T) {
	_, put := builtinFixture(t, func(ctx context.Context, q *registry.Request) error {
		pod, ok := q.Object.DeepCopyObject().(*corev1.Pod)
		if !ok {
			return nil
		}
		pod.Labels = map[string]string{"by": "hook"}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "by", Value: "hook"}}
		pod.Spec.Containers[0].Resources.Requests["memory"] = resourceapi.MustParse("3Gi")
		pod.Status.Message = "by a hook"
		return q.Replace(ctx, pod)
	})
	r := put(builtin.Table().Lookup("", "v1", "pods"), resizable)
	result, err := r.UpdateSubresource(t.Context(), "default", "a", "resize", changing(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["cpu"] = resourceapi.MustParse("2")
	}), registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := result.Object.(*corev1.Pod)
	if has := pod.Spec.Containers[0]; has.Resources.Requests.Cpu().String() != "2" || has.Resources.Requests.Memory().String() != "3Gi" {
		t.Errorf("the container requests %v", has.Resources.Requests)
	}
	if pod.Labels["by"] != "" || len(pod.Spec.Containers[0].Env) != 0 || pod.Status.Message != "" {
		t.Errorf("stored with labels %v, env %v, message %q", pod.Labels, pod.Spec.Containers[0].Env, pod.Status.Message)
	}
}

// TestResizeOfWhatContainersShare: it is completed by what the containers have, as in a new pod.
func TestResizeOfWhatContainersShare(t *testing.T) {
	_, put := builtinFixture(t)
	r := put(builtin.Table().Lookup("", "v1", "pods"), resizable)
	result, err := r.UpdateSubresource(t.Context(), "default", "a", "resize", changing(func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resourceapi.MustParse("2")}}
	}), registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shared := result.Object.(*corev1.Pod).Spec.Resources
	if shared.Limits.Cpu().String() != "2" || shared.Requests.Cpu().String() != "1" || shared.Requests.Memory().String() != "1Gi" {
		t.Errorf("the pod has %+v", shared)
	}
}

// resizable gives a pod a container that requests something.
func resizable(obj resource.Object) {
	pod := obj.(*corev1.Pod)
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resourceapi.MustParse("1"), "memory": resourceapi.MustParse("1Gi")},
	}}}
}
