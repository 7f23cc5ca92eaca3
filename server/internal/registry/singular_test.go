package registry_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestSingularDecides: a write that changes only the field that shows the first value of a list replaces the
// list, whatever its verb.
func TestSingularDecides(t *testing.T) {
	f, put := builtinFixture(t)
	pods := put(builtin.Table().Lookup("", "v1", "pods"), func(obj resource.Object) {
		pod := obj.(*corev1.Pod)
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		pod.Status.PodIP, pod.Status.PodIPs = "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}
	})
	want := func(what string, result *registry.Result, err error, one string, more ...string) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		status := result.Object.(*corev1.Pod).Status
		var list []string
		for _, ip := range status.PodIPs {
			list = append(list, ip.IP)
		}
		if status.PodIP != one || !slices.Equal(list, append([]string{one}, more...)) {
			t.Errorf("%s: %q and %q, want %q first of %q", what, status.PodIP, list, one, more)
		}
	}
	patched := func(kind types.PatchType, body string) (*registry.Result, error) {
		t.Helper()
		p, err := patch.Parse(kind, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return pods.PatchSubresource(t.Context(), "default", "a", "status", p, registry.PatchOptions{WriteOptions: by("m"), Force: true})
	}
	result, err := patched(types.StrategicMergePatchType, `{"status":{"podIP":"10.0.0.2"}}`)
	want("strategic patch", result, err, "10.0.0.2")
	result, err = patched(types.MergePatchType, `{"status":{"podIP":"10.0.0.3"}}`)
	want("merge patch", result, err, "10.0.0.3")
	result, err = patched(types.JSONPatchType, `[{"op":"replace","path":"/status/podIP","value":"10.0.0.4"}]`)
	want("JSON patch", result, err, "10.0.0.4")
	result, err = patched(types.MergePatchType, `{"status":{"podIP":null,"podIPs":[{"ip":"10.0.0.5"},{"ip":"fd00::5"}]}}`)
	want("list without the field", result, err, "10.0.0.5", "fd00::5")
	result, err = patched(types.ApplyPatchType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"status":{"podIP":"10.0.0.6"}}`)
	want("apply", result, err, "10.0.0.6")

	nodes, _ := f.Lookup("", "v1", "nodes")
	node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.1.0.0/24", PodCIDRs: []string{"10.2.0.0/24", "fd00::/64"}}}
	node.Name = "n"
	res := nodes.Resource()
	res.Strategy.Default(node)
	created, err := nodes.Create(t.Context(), "", node, by("m"))
	if err != nil {
		t.Fatal(err)
	}
	if spec := created.Object.(*corev1.Node).Spec; spec.PodCIDR != "10.1.0.0/24" || !slices.Equal(spec.PodCIDRs, []string{"10.1.0.0/24"}) {
		t.Errorf("a node of two opinions was created with %q and %q", spec.PodCIDR, spec.PodCIDRs)
	}
}
