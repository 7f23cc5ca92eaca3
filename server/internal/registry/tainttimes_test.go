package registry_test

import (
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestTaintTimes: a taint of devices says since when it is there, which the server adds if the client does not say it;
// with another effect of a rule, it begins anew.
func TestTaintTimes(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.Resources = builtin.Table() })
	rules, ok := f.Lookup(resourcev1.GroupName, "v1", "devicetaintrules")
	if !ok {
		t.Fatal("no rules are served")
	}
	made, err := rules.Create(t.Context(), "", &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: resourcev1.DeviceTaintRuleSpec{
		Taint: resourcev1.DeviceTaint{Key: "a", Effect: resourcev1.DeviceTaintEffectNoSchedule},
	}}, registry.WriteOptions{FieldManager: "client"})
	if err != nil {
		t.Fatal(err)
	}
	since := func(r *registry.Result, want time.Time) {
		t.Helper()
		if got := r.Object.(*resourcev1.DeviceTaintRule).Spec.Taint.TimeAdded; got == nil || !got.Time.Equal(want) {
			t.Errorf("the taint is there since %v, not %v", got, want)
		}
	}
	began := f.clock.Now()
	since(made, began)
	if fields := made.Object.GetManagedFields(); len(fields) != 1 || !strings.Contains(fields[0].FieldsV1.GetRawString(), "f:timeAdded") {
		t.Errorf("its time belongs to %v", fields)
	}

	change := func(edit func(*resourcev1.DeviceTaint)) *registry.Result {
		t.Helper()
		f.clock.Advance(time.Minute)
		result, err := rules.Update(t.Context(), "", "a", func(current resource.Object) (resource.Object, error) {
			rule := current.DeepCopyObject().(*resourcev1.DeviceTaintRule)
			edit(&rule.Spec.Taint)
			return rule, nil
		}, registry.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	since(change(func(taint *resourcev1.DeviceTaint) { taint.Value = "b" }), began)
	since(change(func(taint *resourcev1.DeviceTaint) { taint.Effect = resourcev1.DeviceTaintEffectNoExecute }), began.Add(2*time.Minute))
	since(change(func(taint *resourcev1.DeviceTaint) { taint.TimeAdded = nil }), began.Add(3*time.Minute))
	named := metav1.NewTime(began.Add(-time.Hour))
	since(change(func(taint *resourcev1.DeviceTaint) {
		taint.Effect, taint.TimeAdded = resourcev1.DeviceTaintEffectNoSchedule, &named
	}), named.Time)
}

func TestTaintTimesOfSlices(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.Resources = builtin.Table() })
	slices, ok := f.Lookup(resourcev1.GroupName, "v1", "resourceslices")
	if !ok {
		t.Fatal("no slices are served")
	}
	all, named := true, metav1.NewTime(f.clock.Now().Add(-time.Hour))
	made, err := slices.Create(t.Context(), "", &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "a", Pool: resourcev1.ResourcePool{Name: "a", ResourceSliceCount: 1}, AllNodes: &all,
		Devices: []resourcev1.Device{{Name: "a", Taints: []resourcev1.DeviceTaint{
			{Key: "a", Effect: resourcev1.DeviceTaintEffectNone}, {Key: "b", Effect: resourcev1.DeviceTaintEffectNone, TimeAdded: &named},
		}}},
	}}, registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	taints := made.Object.(*resourcev1.ResourceSlice).Spec.Devices[0].Taints
	if at := taints[0].TimeAdded; at == nil || !at.Time.Equal(f.clock.Now()) || !taints[1].TimeAdded.Equal(&named) {
		t.Errorf("taints since %v", taints)
	}
}
