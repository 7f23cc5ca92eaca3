package write_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/patch"
)

// randomPod has some of what strategic merges treat differently: lists with and
// without keys, keys that occur twice, unions and maps.
func randomPod(r *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	pick := func(of int) bool { return r.IntN(of) == 0 }
	for n := range 4 {
		if pick(2) {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, fmt.Sprint("l", n), fmt.Sprint(r.IntN(2)))
		}
		if pick(2) {
			pod.Finalizers = append(pod.Finalizers, fmt.Sprint("example.com/", n))
		}
		if pick(2) {
			volume := corev1.Volume{Name: fmt.Sprint("v", n)}
			if pick(2) {
				volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
			} else {
				volume.HostPath = &corev1.HostPathVolumeSource{Path: fmt.Sprint("/", r.IntN(2))}
			}
			pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
		}
		if n == 0 || pick(2) {
			c := corev1.Container{Name: fmt.Sprint("c", n), Image: fmt.Sprint("i", r.IntN(2))}
			for range r.IntN(3) {
				c.Args = append(c.Args, fmt.Sprint(r.IntN(3)))
				c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 80 + int32(r.IntN(3)), Protocol: corev1.ProtocolTCP, HostIP: fmt.Sprint("10.0.0.", r.IntN(3))})
			}
			if pick(2) {
				c.Env = append(c.Env, corev1.EnvVar{Name: "E", Value: fmt.Sprint(r.IntN(2))}, corev1.EnvVar{Name: "F"})
			}
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	r.Shuffle(len(pod.Spec.Containers), func(i, j int) {
		pod.Spec.Containers[i], pod.Spec.Containers[j] = pod.Spec.Containers[j], pod.Spec.Containers[i]
	})
	if pick(2) {
		pod.Spec.NodeSelector = map[string]string{"a": fmt.Sprint(r.IntN(2))}
	}
	return pod
}

// TestStrategicMergeTurnsOldIntoChanged has Kubernetes' library apply the patches.
func TestStrategicMergeTurnsOldIntoChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		old, changed := randomPod(r), randomPod(r)
		p, err := patch.StrategicMerge(old, changed, patch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before, err := json.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		after, err := strategicpatch.StrategicMergePatch(before, p.Data, &corev1.Pod{})
		if err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, p.Data)
		}
		got := &corev1.Pod{}
		if err := json.Unmarshal(after, got); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(got, changed) {
			want, _ := json.Marshal(changed)
			t.Fatalf("round %d\nold   %s\npatch %s\ngot   %s\nwant  %s", round, before, p.Data, after, want)
		}
	}
}

func TestPatchesOnTheServer(t *testing.T) {
	ctx, cl := connect(t)
	maps := client.For[*corev1.ConfigMap](cl).Namespace("default")
	old, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"example.com/one", "example.com/two"}},
		Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := old.DeepCopy()
	changed.Finalizers = []string{"example.com/two", "example.com/three"}
	p, err := patch.StrategicMerge(old, changed, patch.Options{OptimisticLock: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := maps.Patch(ctx, "a", p.Type, p.Data, metav1.PatchOptions{})
	if err != nil || fmt.Sprint(got.Finalizers) != fmt.Sprint(changed.Finalizers) {
		t.Errorf("strategic: %v, %v", got.Finalizers, err)
	}
	if p, err = patch.JSON(patch.Test("/data/k", "v"), patch.Add(patch.Pointer("data", "b"), "w"), patch.Remove("/metadata/finalizers")); err != nil {
		t.Fatal(err)
	}
	got, err = maps.Patch(ctx, "a", p.Type, p.Data, metav1.PatchOptions{})
	if err != nil || got.Data["b"] != "w" || len(got.Finalizers) != 0 {
		t.Errorf("JSON: %v, %v", got, err)
	}
}
