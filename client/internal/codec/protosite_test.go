package codec

import (
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/internal/wiretest"
)

// TestMessagesByDifference: pods that differ in little from the one before, as those of
// a list do, are what their generated code reads; and what a caller does to a pod does
// not show in those that come later.
func TestMessagesByDifference(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(3, 4))}
	share := podCodec().WithInterning().newSharer()
	pod := wiretest.Pod(1)
	for n := range 2000 {
		fields := []reflect.Value{reflect.ValueOf(&pod.ObjectMeta).Elem(), reflect.ValueOf(&pod.Spec).Elem(), reflect.ValueOf(&pod.Status).Elem()}
		if len(pod.Spec.Containers) > 0 {
			fields = append(fields, reflect.ValueOf(&pod.Spec.Containers[f.IntN(len(pod.Spec.Containers))]).Elem())
		}
		changed := fields[f.IntN(len(fields))]
		field := changed.Field(f.IntN(changed.NumField()))
		if field.SetZero(); f.IntN(4) > 0 {
			f.fill(field, 3)
		}
		encoded, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		want, got := &corev1.Pod{}, &corev1.Pod{}
		if err := want.Unmarshal(encoded); err != nil {
			t.Fatal(err)
		}
		site := share.beginObject(shapeOf(reflect.TypeFor[corev1.Pod]()))
		if err := share.object(shapeOf(reflect.TypeFor[corev1.Pod]()), site, reflect.ValueOf(got).UnsafePointer(), encoded); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("pod %d: got %+v\nwant %+v", n, got, want)
		}
		got.Name, got.Spec.NodeName, got.Status.Phase = "changed", "changed", "changed"
	}
	if len(share.sites.root.members) == 0 {
		t.Error("no site knows anything")
	}
}

// TestNoSitesWithoutInterning: what is known of the message before is shared with it.
func TestNoSitesWithoutInterning(t *testing.T) {
	share := podCodec().newSharer()
	encoded, err := wiretest.Pod(1).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * sitesAfter {
		if err := share.unmarshalShared(encoded, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
	}
	if share.sites.root != nil {
		t.Error("a decoder without interning keeps messages")
	}
}
