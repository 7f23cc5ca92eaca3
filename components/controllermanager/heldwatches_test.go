package controller_test

import (
	"context"
	"log/slog"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/levelwire/levelwire/client"
	controller "github.com/levelwire/levelwire/components/controllermanager"
)

// startManagerBehind runs all controllers with one set of informers, of which one is behind while
// the returned watch is held.
func (c *cluster) startManagerBehind(resource string) *laggingWatch {
	c.t.Helper()
	connected, held := c.connectBehind("system:kube-controller-manager", resource)
	m, err := controller.NewManager(connected, controller.Options{
		Logger:    slog.New(slog.DiscardHandler),
		ClientFor: func(string) (*client.Client, error) { return c.connectAs("controller", "system:masters"), nil },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.t.Cleanup(cancel)
	c.start(ctx, "controllers", m.Run)
	<-held.opened
	return held
}

// happened returns a function that returns the names of the objects to which something of a kind has happened
// between the two calls. last is an object to which it has not: its creation ends what is looked at.
func happened[T client.Object](c *cluster, api client.Resource[T], last T, is func(client.WatchEvent[T]) bool) func() []string {
	c.t.Helper()
	list, err := api.List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return func() (names []string) {
		last := create(c, api, last)
		w, err := api.Watch(c.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			c.t.Fatal(err)
		}
		defer w.Close()
		for {
			ev, err := w.Next()
			switch {
			case err != nil:
				c.t.Fatal(err)
			case ev.Object.GetUID() == last.GetUID():
				return names
			case is(ev):
				names = append(names, ev.Object.GetName())
			}
		}
	}
}

func added[T client.Object](ev client.WatchEvent[T]) bool { return ev.Type == watch.Added }

func deleted[T client.Object](ev client.WatchEvent[T]) bool {
	return ev.Type == watch.Deleted || ev.Type == watch.Modified && ev.Object.GetDeletionTimestamp() != nil
}

func podsCreated(c *cluster) func() []string {
	c.t.Helper()
	return happened(c, in[*corev1.Pod](c), newPod("last"), added)
}

// newPod returns a pod that no selector matches.
func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: podTemplate("web:1").Spec}
}

// removePod removes a pod for which one is to be made, or not.
func (c *cluster) removePod(which func(*corev1.Pod) bool) {
	c.t.Helper()
	pods := in[*corev1.Pod](c)
	list, err := pods.List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, pod := range list.Items {
		if which(pod) {
			remove(c, pods, pod.Name, metav1.DeleteOptions{})
			return
		}
	}
	c.t.Fatal("there is no such pod")
}

func anyPod(*corev1.Pod) bool { return true }

func (c *cluster) awaitPods(n int) {
	c.t.Helper()
	awaitEach(c, in[*corev1.Pod](c), metav1.ListOptions{}, "pods", func(all map[string]*corev1.Pod) bool { return len(all) == n })
}

// deploymentSeen returns when the controller has seen all that it has written to deployments: it does
// nothing for one of which it lacks its own last write, and asks nothing. It has seen that when it has
// seen a later deployment.
func (c *cluster) deploymentSeen() {
	c.t.Helper()
	deployments, later := in[*appsv1.Deployment](c), newDeployment("later", 0)
	later.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "later"}}
	later.Spec.Template.Labels = later.Spec.Selector.MatchLabels
	create(c, deployments, later)
	await(c, deployments, "later", "seen", func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration > 0 })
}

// replicaSetSeen is deploymentSeen for ReplicaSets, and statefulSetSeen for StatefulSets.
func (c *cluster) replicaSetSeen() {
	c.t.Helper()
	sets, later := in[*appsv1.ReplicaSet](c), newSet("later", 0)
	later.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "later"}}
	later.Spec.Template.Labels = later.Spec.Selector.MatchLabels
	create(c, sets, later)
	await(c, sets, "later", "seen", func(s *appsv1.ReplicaSet) bool { return s.Status.ObservedGeneration > 0 })
}

func (c *cluster) statefulSetSeen() {
	c.t.Helper()
	sets, later := in[*appsv1.StatefulSet](c), newStatefulSet("later", 0)
	later.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "later"}}
	later.Spec.Template.Labels = later.Spec.Selector.MatchLabels
	create(c, sets, later)
	await(c, sets, "later", "seen", func(s *appsv1.StatefulSet) bool { return s.Status.ObservedGeneration > 0 })
}

func newStatefulSet(name string, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: selectWeb(), Template: podTemplate("web:1"), PodManagementPolicy: appsv1.ParallelPodManagement,
	}}
}

// heldStep is a change that comes to the controllers while one that was made before it is held back with
// another watch.
type heldStep struct {
	held   string
	nodes  int
	before func(c *cluster)
	first  func(c *cluster) // its event is held back
	second func(c *cluster) // of another resource
	end    func(c *cluster) // waits until the controllers have seen both
	// done begins to look for what a controller would do wrong, and want is how much of it is right.
	done func(c *cluster) func() []string
	want int
}

func (step heldStep) run(t *testing.T) {
	t.Parallel()
	c := newCluster(t, step.nodes)
	held := c.startManagerBehind(step.held)
	step.before(c)
	done := step.done(c)
	held.hold()
	step.first(c)
	step.second(c)
	held.awaitAsked(c.t) // a controller asks how far the watch is, before it decides
	held.awaitAsked(c.t)
	held.release()
	step.end(c)
	if names := done(); len(names) != step.want {
		t.Errorf("%q, want %d", names, step.want)
	}
}

// TestControllersWithAWatchBehind: what is decided without the first change would be
// another pod, which is taken away again when the first one comes.
func TestControllersWithAWatchBehind(t *testing.T) {
	const three = 3
	one, two := ptr.To[int32](1), ptr.To[int32](2)
	for name, step := range map[string]heldStep{
		"ReplicaSet": {
			held: "replicasets",
			before: func(c *cluster) {
				sets := in[*appsv1.ReplicaSet](c)
				create(c, sets, newSet("web", three))
				await(c, sets, "web", "three pods", func(s *appsv1.ReplicaSet) bool { return s.Status.FullyLabeledReplicas == 3 })
				c.replicaSetSeen()
			},
			first: func(c *cluster) {
				change(c, in[*appsv1.ReplicaSet](c), "web", func(s *appsv1.ReplicaSet) { s.Spec.Replicas = two })
			},
			second: func(c *cluster) { c.removePod(anyPod) },
			end: func(c *cluster) {
				await(c, in[*appsv1.ReplicaSet](c), "web", "two pods", func(s *appsv1.ReplicaSet) bool {
					return s.Status.ObservedGeneration == s.Generation && s.Status.Replicas == 2
				})
			},
		},
		"ReplicaSet that adopts": {
			held:   "pods",
			before: func(c *cluster) {},
			first: func(c *cluster) {
				template := podTemplate("web:1")
				create(c, in[*corev1.Pod](c), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: template.Labels}, Spec: template.Spec})
			},
			second: func(c *cluster) { create(c, in[*appsv1.ReplicaSet](c), newSet("web", *two)) },
			end: func(c *cluster) {
				await(c, in[*appsv1.ReplicaSet](c), "web", "two pods", func(s *appsv1.ReplicaSet) bool { return s.Status.Replicas == 2 })
			},
			want: 2, // the orphan is one of them
		},
		"StatefulSet": {
			held: "statefulsets",
			before: func(c *cluster) {
				sets := in[*appsv1.StatefulSet](c)
				create(c, sets, newStatefulSet("web", *two))
				await(c, sets, "web", "two pods", func(s *appsv1.StatefulSet) bool { return s.Status.Replicas == 2 && s.Status.UpdatedReplicas == 2 })
				c.statefulSetSeen()
			},
			first: func(c *cluster) {
				change(c, in[*appsv1.StatefulSet](c), "web", func(s *appsv1.StatefulSet) { s.Spec.Replicas = one })
			},
			second: func(c *cluster) { c.removePod(func(pod *corev1.Pod) bool { return pod.Name == "web-1" }) },
			end: func(c *cluster) {
				await(c, in[*appsv1.StatefulSet](c), "web", "one pod", func(s *appsv1.StatefulSet) bool {
					return s.Status.ObservedGeneration == s.Generation && s.Status.Replicas == 1
				})
			},
		},
		"Job": {
			held: "pods",
			before: func(c *cluster) {
				jobs, job := in[*batchv1.Job](c), newJob("work", 2, 2, batchv1.NonIndexedCompletion, "0")
				job.Spec.Suspend = new(true)
				create(c, jobs, job)
				await(c, jobs, "work", "suspended", func(j *batchv1.Job) bool { return len(j.Status.Conditions) > 0 })
			},
			first: func(c *cluster) { // another leader's
				job, err := in[*batchv1.Job](c).Get(c.ctx, "work", metav1.GetOptions{})
				if err != nil {
					c.t.Fatal(err)
				}
				createPod(c, "work-1", func(pod *corev1.Pod) {
					pod.Labels, pod.Finalizers, pod.Spec = job.Spec.Template.Labels, []string{batchv1.JobTrackingFinalizer}, job.Spec.Template.Spec
					pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
				})
			},
			second: func(c *cluster) {
				change(c, in[*batchv1.Job](c), "work", func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
			},
			end: func(c *cluster) {
				await(c, in[*batchv1.Job](c), "work", "two pods", func(j *batchv1.Job) bool { return j.Status.Active == 2 })
			},
			want: 2, // the other leader's, and one that lacked
		},
		"DaemonSet": {
			held:  "nodes",
			nodes: 2,
			before: func(c *cluster) {
				create(c, in[*appsv1.DaemonSet](c), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DaemonSetSpec{
					Selector: selectWeb(), Template: podTemplate("web:1"),
				}})
				await(c, in[*appsv1.DaemonSet](c), "web", "two nodes", func(s *appsv1.DaemonSet) bool { return s.Status.NumberReady == 2 })
			},
			first: func(c *cluster) {
				change(c, client.For[*corev1.Node](c.client), "node-2", func(node *corev1.Node) {
					node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "closed", Effect: corev1.TaintEffectNoSchedule})
				})
			},
			second: func(c *cluster) { c.removePod(func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "node-2" }) },
			end: func(c *cluster) {
				await(c, in[*appsv1.DaemonSet](c), "web", "one node", func(s *appsv1.DaemonSet) bool {
					return s.Status.DesiredNumberScheduled == 1 && s.Status.CurrentNumberScheduled == 1 && s.Status.NumberMisscheduled == 0
				})
			},
		},
		"Deployment": {
			held: "deployments",
			before: func(c *cluster) {
				deployments := in[*appsv1.Deployment](c)
				create(c, deployments, newDeployment("web", three))
				await(c, deployments, "web", "three pods", func(d *appsv1.Deployment) bool {
					return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 3
				})
				c.deploymentSeen()
			},
			first: func(c *cluster) {
				change(c, in[*appsv1.Deployment](c), "web", func(d *appsv1.Deployment) { d.Spec.Replicas = one })
			},
			second: func(c *cluster) {
				sets, err := in[*appsv1.ReplicaSet](c).List(c.ctx, metav1.ListOptions{LabelSelector: "app=web"})
				if err != nil || len(sets.Items) != 1 {
					c.t.Fatal(sets, err)
				}
				change(c, in[*appsv1.ReplicaSet](c), sets.Items[0].Name, func(s *appsv1.ReplicaSet) { s.Spec.Replicas = two })
			},
			end: func(c *cluster) {
				await(c, in[*appsv1.Deployment](c), "web", "one pod", func(d *appsv1.Deployment) bool {
					return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == 1
				})
			},
		},
	} {
		step.done = podsCreated
		t.Run(name, step.run)
	}
}
