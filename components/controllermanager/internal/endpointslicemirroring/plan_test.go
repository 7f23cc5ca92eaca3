package endpointslicemirroring

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func newSource(uid types.UID, subsets ...legacySubset) *legacyEndpoints {
	return &legacyEndpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid}, Subsets: subsets}
}

// mirrored returns the slices that are planned for an object without any, under the names s1, s2 and so on.
func mirrored(source *legacyEndpoints) (existing []*discoveryv1.EndpointSlice) {
	p := planFor(source, desiredOf(source.Subsets).groups, nil)
	for i, slice := range p.create {
		slice.Name, slice.ResourceVersion = fmt.Sprintf("s%d", i+1), fmt.Sprint(i+1)
		existing = append(existing, slice)
	}
	return existing
}

// describePlan writes a plan as words such as "create IPv4 80", "update s1" and "remove s2".
func describePlan(p plan) string {
	var words []string
	for _, slice := range p.create {
		words = append(words, "create "+strings.TrimSuffix(strings.ReplaceAll(groupID(slice.AddressType, slice.Ports), "/TCP/", ":"), ";"))
	}
	for _, slice := range p.update {
		words = append(words, "update "+slice.Name)
	}
	for _, slice := range p.remove {
		words = append(words, "remove "+slice.Name)
	}
	return strings.Join(words, ", ")
}

func subset(port string, ips ...string) legacySubset {
	return legacySubset{Ports: portsOf(port), Addresses: addressesOf(ips...)}
}

// TestPlans: what has changed is written, with as few slices as there may be, and nothing else.
func TestPlans(t *testing.T) {
	before := newSource("uid", subset("a/1", "10.0.0.1"), subset("b/2", "10.0.0.2")) // s1 and s2
	for _, test := range []struct {
		name   string
		now    *legacyEndpoints
		change func(existing []*discoveryv1.EndpointSlice)
		want   string
	}{
		{name: "as it was", now: before},
		{name: "an address", now: newSource("uid", subset("a/1", "10.0.0.1"), subset("b/2", "10.0.0.3")), want: "update s2"},
		{name: "a port that no slice has", now: newSource("uid", subset("a/1", "10.0.0.1"), subset("c/3", "10.0.0.2")), want: "update s2"},
		{name: "one more", now: newSource("uid", subset("a/1", "10.0.0.1"), subset("b/2", "10.0.0.2"), subset("c/3", "10.0.0.3")), want: "create IPv4;c:3/"},
		{name: "one less", now: newSource("uid", subset("b/2", "10.0.0.2")), want: "remove s1"},
		{name: "another family", now: newSource("uid", subset("a/1", "10.0.0.1"), subset("b/2", "fd00::1")), want: "create IPv6;b:2/, remove s2"},
		{name: "no addresses", now: newSource("uid"), want: "remove s1, remove s2"},
		{name: "another object of the name", now: newSource("other", before.Subsets...), want: "update s1, update s2"},
		{
			name: "a slice twice, as after two leaders", now: before,
			change: func(existing []*discoveryv1.EndpointSlice) { existing[1].Ports = existing[0].Ports },
			want:   "update s2", // which is the one that is missing
		},
		{
			name: "a slice too many", now: newSource("uid", subset("a/1", "10.0.0.1")),
			change: func(existing []*discoveryv1.EndpointSlice) { existing[1].Ports = existing[0].Ports },
			want:   "remove s2",
		},
		{
			name: "one that is being deleted", now: before,
			change: func(existing []*discoveryv1.EndpointSlice) {
				existing[0].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			},
			want: "create IPv4;a:1/",
		},
		{
			name: "one that somebody has changed", now: before,
			change: func(existing []*discoveryv1.EndpointSlice) { existing[1].Labels["own"] = "x" },
			want:   "update s2",
		},
		{
			name: "the same ports in another order", now: newSource("uid", legacySubset{Ports: portsOf("b/2", "a/1"), Addresses: addressesOf("10.0.0.1")}),
			change: func(existing []*discoveryv1.EndpointSlice) {
				existing[0].Ports = append(slices.Clone(existing[1].Ports), existing[0].Ports...)
			},
			want: "remove s2",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			existing := mirrored(before)
			if test.change != nil {
				test.change(existing)
			}
			p := planFor(test.now, desiredOf(test.now.Subsets).groups, existing)
			if got := describePlan(p); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, slice := range p.update {
				if !metav1.IsControlledBy(slice, test.now) || slice.ResourceVersion == "" {
					t.Errorf("%s: owners %v, version %q", slice.Name, slice.OwnerReferences, slice.ResourceVersion)
				}
			}
		})
	}
}

// TestWhatASliceHas: a slice has what the object has of labels and annotations, apart from what is not true of it.
func TestWhatASliceHas(t *testing.T) {
	source := newSource("uid", subset("80", "10.0.0.1"))
	source.Labels = map[string]string{"app": "web", discoveryv1.LabelManagedBy: "me"}
	source.Annotations = map[string]string{"note": "n", corev1.LastAppliedConfigAnnotation: "{}", corev1.EndpointsLastChangeTriggerTime: "2026-01-01T00:00:00Z"}
	slice := mirrored(source)[0]
	for what, want := range map[string]string{
		fmt.Sprint(slice.Labels): fmt.Sprint(map[string]string{
			"app": "web", discoveryv1.LabelManagedBy: "endpointslicemirroring-controller.k8s.io", discoveryv1.LabelServiceName: "web",
		}),
		fmt.Sprint(slice.Annotations):              fmt.Sprint(map[string]string{"note": "n"}),
		slice.Namespace + "/" + slice.GenerateName: "default/web-",
	} {
		if what != want {
			t.Errorf("got %s, want %s", what, want)
		}
	}
	if owner := metav1.GetControllerOf(slice); owner == nil || owner.Kind != "Endpoints" || owner.APIVersion != "v1" || owner.UID != "uid" || !*owner.BlockOwnerDeletion {
		t.Errorf("the owner is %+v", owner)
	}
	if len(source.Labels) != 2 || len(source.Annotations) != 3 {
		t.Errorf("the object of the cache has changed: %v, %v", source.Labels, source.Annotations)
	}
}
