package nodeauthorizer

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestChangesAreReported: a kubelet that may have lost a right is reported, and no other.
func TestChangesAreReported(t *testing.T) {
	f := newFixture(t, true)
	for _, name := range []string{"a", "storage"} {
		must(t, namespace.Ensure(t.Context(), f.set, name))
	}
	f.create("", "pods", pod("mine", "one"))
	f.create("", "pods", pod("yours", "two"))
	f.create("", "persistentvolumes", volume("disk-mine", "claim-mine", "stage-mine"))
	reported := make(chan string, 100)
	stop := f.node.OnChange(func(user string) { reported <- user })
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.node.Run(ctx) })
	defer running.Wait()
	defer cancel()
	want := func(users ...string) {
		t.Helper()
		for _, user := range users {
			if got := <-reported; got != user {
				t.Errorf("%q was reported, want %q", got, user)
			}
		}
	}
	want("", "") // all that was there: pods and volumes
	pods, _ := f.set.Lookup("", "v1", "pods")
	_, err := pods.UpdateStatus(t.Context(), "a", "mine", func(o resource.Object) (resource.Object, error) {
		p := o.(*corev1.Pod).DeepCopy()
		p.Status.Phase = corev1.PodRunning
		return p, nil
	}, registry.UpdateOptions{Unconditional: true})
	must(t, err)
	f.create("", "pods", pod("more", "two"))
	asked := parse(t, "get secrets a/volume-mine")
	asked.User.Name, asked.User.Groups = "system:node:one", []string{"system:nodes"}
	f.expect("before", asked, "")
	now := &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	_, err = pods.Delete(t.Context(), "a", "mine", now)
	must(t, err)
	want("system:node:one")
	f.expect("after", asked, unrelated)

	volumes, _ := f.set.Lookup("", "v1", "persistentvolumes")
	_, err = volumes.Delete(t.Context(), "", "disk-mine", now)
	must(t, err)
	want("")
	if n := len(f.node.index.secrets) + len(f.node.index.bySecret); n > 0 {
		t.Errorf("%d secrets are left of a deleted volume", n)
	}
	if _, ok := f.node.index.pods["one"]; ok || len(f.node.index.pods["two"]) != 2 {
		t.Errorf("pods: %v", f.node.index.pods)
	}
}

// TestVolumesOfOneClaim: a secret is allowed as long as one volume that the node's pod claims is mounted with it, whichever
// of them ends first, and whoever else's volume names it.
func TestVolumesOfOneClaim(t *testing.T) {
	f := newFixture(t, true)
	for _, name := range []string{"a", "storage"} {
		must(t, namespace.Ensure(t.Context(), f.set, name))
	}
	f.create("", "pods", pod("mine", "one"))
	f.create("", "persistentvolumes", volume("disk-1", "claim-mine", "stage"))
	f.create("", "persistentvolumes", volume("disk-2", "claim-mine", "stage"))
	f.create("", "persistentvolumes", volume("disk-3", "mine-e", "stage")) // the claim of the pod's ephemeral volume
	f.create("", "persistentvolumes", volume("disk-4", "claim-nobodys", "stage"))
	asked := parse(t, "get secrets storage/stage")
	asked.User.Name, asked.User.Groups = "system:node:one", []string{"system:nodes"}
	f.expect("all volumes", asked, "")
	volumes, _ := f.set.Lookup("", "v1", "persistentvolumes")
	for _, step := range []struct{ remove, want string }{{"disk-1", ""}, {"disk-2", ""}, {"disk-3", unrelated}} {
		_, err := volumes.Delete(t.Context(), "", step.remove, &metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		must(t, err)
		f.expect("without "+step.remove, asked, step.want)
	}
}

// TestHasString: strings in JSON are found wherever they are, and nothing else is.
func TestHasString(t *testing.T) {
	for json, want := range map[string]bool{
		`{"x":"a"}`: true, `{"x":"aa","y":"a"}`: true, `{"x":"aa"}`: false, `{"a":1}`: true, `"a`: false, ``: false, `a`: false,
	} {
		if hasString([]byte(json), "a") != want || hasString([]byte(json), "") {
			t.Errorf("%s: %v", json, !want)
		}
	}
}
