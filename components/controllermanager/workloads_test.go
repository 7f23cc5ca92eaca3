package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/kubelet"
)

func isConflict(err error) bool { return apierrors.IsConflict(err) }

func podTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

func selectWeb() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func create[T client.Object](c *cluster, api client.Resource[T], obj T) T {
	c.t.Helper()
	created, err := api.Create(c.ctx, obj, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

func remove[T client.Object](c *cluster, api client.Resource[T], name string, opts metav1.DeleteOptions) {
	c.t.Helper()
	if err := api.Delete(c.ctx, name, opts); err != nil {
		c.t.Fatal(err)
	}
}

func in[T client.Object](c *cluster) client.Resource[T] {
	return client.For[T](c.client).Namespace("default")
}

func newSet(name string, replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selectWeb(), Template: podTemplate("web:1")},
	}
}

func ready(n int32) func(*appsv1.ReplicaSet) bool {
	return func(set *appsv1.ReplicaSet) bool { return set.Status.Replicas == n && set.Status.ReadyReplicas == n }
}

func TestReplicaSetKeepsItsPods(t *testing.T) {
	c := newCluster(t, 2)
	sets, pods := in[*appsv1.ReplicaSet](c), in[*corev1.Pod](c)
	orphan := create(c, pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: selectWeb().MatchLabels}, Spec: podTemplate("web:1").Spec})
	create(c, sets, newSet("web", 3))
	// Started when both exist: an orphan that is seen after the set has all its
	// pods is adopted too, but may be the one that is then too many.
	c.startManager()
	await(c, sets, "web", "3 ready", ready(3))
	adopted := await(c, pods, "orphan", "adopted", func(p *corev1.Pod) bool { return metav1.GetControllerOf(p) != nil })
	if adopted.UID != orphan.UID {
		t.Error("the orphan was replaced, not adopted")
	}

	remove(c, pods, "orphan", metav1.DeleteOptions{})
	awaitEach(c, pods, metav1.ListOptions{}, "another pod in its place", func(all map[string]*corev1.Pod) bool {
		_, there := all["orphan"]
		return !there && len(all) == 3
	})
	change(c, sets, "web", func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = 1 })
	await(c, sets, "web", "1 ready", ready(1))

	remove(c, sets, "web", metav1.DeleteOptions{})
	awaitEach(c, pods, metav1.ListOptions{}, "no pods", func(all map[string]*corev1.Pod) bool { return len(all) == 0 })
}

func TestReplicaSetReleasesWhatItNoLongerSelects(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	sets, pods := in[*appsv1.ReplicaSet](c), in[*corev1.Pod](c)
	create(c, sets, newSet("web", 1))
	await(c, sets, "web", "ready", ready(1))
	list, err := pods.List(c.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	name := list.Items[0].Name
	change(c, pods, name, func(p *corev1.Pod) { p.Labels["app"] = "debug" })
	await(c, pods, name, "released", func(p *corev1.Pod) bool { return metav1.GetControllerOf(p) == nil })
	awaitEach(c, pods, metav1.ListOptions{LabelSelector: "app=web"}, "a successor", func(all map[string]*corev1.Pod) bool { return len(all) == 1 })
}

func newDeployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selectWeb(), Template: podTemplate("web:1")},
	}
}

// rolledOut is what kubectl rollout status waits for.
func rolledOut(d *appsv1.Deployment) bool {
	n := *d.Spec.Replicas
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == n && d.Status.Replicas == n && d.Status.AvailableReplicas == n
}

func TestDeploymentRollsForthAndBack(t *testing.T) {
	c := newCluster(t, 2)
	c.startManager()
	deployments, sets := in[*appsv1.Deployment](c), in[*appsv1.ReplicaSet](c)
	create(c, deployments, newDeployment("web", 4))
	first := await(c, deployments, "web", "rolled out", rolledOut)
	change(c, deployments, "web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" })
	await(c, deployments, "web", "second revision", func(d *appsv1.Deployment) bool {
		return rolledOut(d) && d.Annotations["deployment.kubernetes.io/revision"] == "2"
	})
	change(c, deployments, "web", func(d *appsv1.Deployment) { d.Spec.Template = first.Spec.Template })
	await(c, deployments, "web", "the first template as third revision", func(d *appsv1.Deployment) bool {
		return rolledOut(d) && d.Annotations["deployment.kubernetes.io/revision"] == "3"
	})
	list, err := sets.List(c.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d replica sets, %v; going back must find the first again", len(list.Items), err)
	}
	remove(c, deployments, "web", metav1.DeleteOptions{})
	awaitEach(c, sets, metav1.ListOptions{}, "no sets", func(all map[string]*appsv1.ReplicaSet) bool { return len(all) == 0 })
}

func TestRecreateNeverMixesVersions(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	deployments := in[*appsv1.Deployment](c)
	d := newDeployment("web", 3)
	d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	create(c, deployments, d)
	await(c, deployments, "web", "rolled out", rolledOut)
	change(c, deployments, "web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" })
	awaitEach(c, in[*corev1.Pod](c), metav1.ListOptions{}, "three new pods", func(all map[string]*corev1.Pod) bool {
		images := map[string]int{}
		for _, pod := range all {
			// A pod that has ended may be about to go; it runs no more.
			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				images[pod.Spec.Containers[0].Image]++
			}
		}
		if len(images) > 1 {
			t.Fatalf("pods of both versions: %v", images)
		}
		return images["web:2"] == 3
	})
}

func TestServicesFindTheirPods(t *testing.T) {
	c := newCluster(t, 2)
	c.startManager()
	create(c, in[*corev1.Service](c), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: selectWeb().MatchLabels, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	create(c, in[*appsv1.ReplicaSet](c), newSet("web", 3))
	serving := func(n int) func(map[string]*discoveryv1.EndpointSlice) bool {
		return func(all map[string]*discoveryv1.EndpointSlice) bool {
			count := 0
			for _, slice := range all {
				for _, e := range slice.Endpoints {
					if *e.Conditions.Ready {
						count++
					}
				}
			}
			return count == n && len(all) == 1
		}
	}
	opts := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"}
	awaitEach(c, in[*discoveryv1.EndpointSlice](c), opts, "3 ready endpoints", serving(3))
	change(c, in[*appsv1.ReplicaSet](c), "web", func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = 1 })
	awaitEach(c, in[*discoveryv1.EndpointSlice](c), opts, "1 ready endpoint", serving(1))
}

func TestNamespaceGoesWithAllInIt(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	namespaces := client.For[*corev1.Namespace](c.client)
	create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	sets := client.For[*appsv1.ReplicaSet](c.client).Namespace("team")
	create(c, sets, newSet("web", 2))
	await(c, sets, "web", "ready", ready(2))
	remove(c, namespaces, "team", metav1.DeleteOptions{})
	awaitEach(c, namespaces, metav1.ListOptions{}, "the namespace gone", func(all map[string]*corev1.Namespace) bool {
		_, there := all["team"]
		return !there
	})
	pods, err := client.For[*corev1.Pod](c.client).List(c.ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("%d pods outlive their namespace, %v", len(pods.Items), err)
	}
}

func newJob(name string, completions, parallelism int32, mode batchv1.CompletionMode, exit string) *batchv1.Job {
	template := podTemplate("work:1")
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	template.Annotations = map[string]string{kubelet.AnnotationExitCode: exit}
	limit := int32(0)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Completions: &completions, Parallelism: &parallelism, CompletionMode: &mode, BackoffLimit: &limit, Template: template,
		},
	}
}

func jobEnded(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

func TestJobsCountWhatTheirPodsDid(t *testing.T) {
	c := newCluster(t, 2)
	c.startManager()
	jobs := in[*batchv1.Job](c)
	create(c, jobs, newJob("plain", 7, 3, batchv1.NonIndexedCompletion, "0"))
	create(c, jobs, newJob("indexed", 5, 2, batchv1.IndexedCompletion, "0"))
	create(c, jobs, newJob("failing", 1, 1, batchv1.NonIndexedCompletion, "3"))

	if job := await(c, jobs, "plain", "ended", jobEnded); job.Status.Succeeded != 7 || job.Status.CompletionTime == nil {
		t.Errorf("plain: %+v", job.Status)
	}
	if job := await(c, jobs, "indexed", "ended", jobEnded); job.Status.CompletedIndexes != "0-4" || job.Status.Succeeded != 5 {
		t.Errorf("indexed: %+v", job.Status)
	}
	if job := await(c, jobs, "failing", "ended", jobEnded); job.Status.Failed != 1 || job.Status.Succeeded != 0 {
		t.Errorf("failing: %+v", job.Status)
	}
	pods, err := in[*corev1.Pod](c).List(c.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
			t.Errorf("pod %s still waits to be counted", pod.Name)
		}
	}
	remove(c, jobs, "plain", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	awaitEach(c, in[*corev1.Pod](c), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=plain"}, "its pods gone",
		func(all map[string]*corev1.Pod) bool { return len(all) == 0 })
}

// A job that replaces only what has failed waits for the end of a pod that
// a client deleted, and goes on when it has come.
func TestJobGoesOnAfterItsPodWasDeleted(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	jobs, podAPI := in[*batchv1.Job](c), in[*corev1.Pod](c)
	patient := newJob("patient", 1, 1, batchv1.NonIndexedCompletion, "0")
	patient.Spec.Template.Annotations[kubelet.AnnotationRunFor] = "1h"
	policy, retries := batchv1.Failed, int32(3)
	patient.Spec.PodReplacementPolicy, patient.Spec.BackoffLimit = &policy, &retries
	create(c, jobs, patient)
	first := ""
	awaitEach(c, podAPI, metav1.ListOptions{}, "its pod running", func(all map[string]*corev1.Pod) bool {
		for name, pod := range all {
			first = name
			return pod.Status.Phase == corev1.PodRunning
		}
		return false
	})
	remove(c, podAPI, first, metav1.DeleteOptions{})
	await(c, jobs, "patient", "one failure", func(job *batchv1.Job) bool {
		return job.Status.Failed == 1 && job.Status.Terminating != nil && *job.Status.Terminating == 0
	})
	awaitEach(c, podAPI, metav1.ListOptions{}, "a second pod running, the first gone", func(all map[string]*corev1.Pod) bool {
		for name, pod := range all {
			if name != first && pod.Status.Phase == corev1.PodRunning {
				return all[first] == nil
			}
		}
		return false
	})
}

// An orphan that has one of a set's names is the set's, and others with its labels are not.
func TestStatefulSetAdoptsItsNames(t *testing.T) {
	c := newCluster(t, 0)
	c.startManager()
	sets, pods := in[*appsv1.StatefulSet](c), in[*corev1.Pod](c)
	create(c, sets, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(0)), Selector: selectWeb(), Template: podTemplate("web:1"),
	}})
	await(c, sets, "web", "seen", func(set *appsv1.StatefulSet) bool { return set.Status.ObservedGeneration == set.Generation })
	createPod(c, "web", nil)
	createPod(c, "web-01", nil)
	createPod(c, "web-7", nil)
	awaitEach(c, pods, metav1.ListOptions{}, "the set has taken web-7, which is one too many", func(all map[string]*corev1.Pod) bool { return all["web-7"] == nil })
	for _, name := range []string{"web", "web-01"} {
		if pod, err := pods.Get(c.ctx, name, metav1.GetOptions{}); err != nil || len(pod.OwnerReferences) != 0 {
			t.Errorf("%s: owners %v, %v", name, pod.GetOwnerReferences(), err)
		}
	}
}

func TestStatefulSetKeepsNamesAndOrder(t *testing.T) {
	c := newCluster(t, 2)
	c.startManager()
	sets, pods := in[*appsv1.StatefulSet](c), in[*corev1.Pod](c)
	replicas := int32(3)
	create(c, sets, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, ServiceName: "db", Selector: selectWeb(), Template: podTemplate("db:1"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storageOf("1Gi")},
			}}},
	})
	awaitEach(c, pods, metav1.ListOptions{}, "three pods, each after the one before", func(all map[string]*corev1.Pod) bool {
		for i := 1; i < 3; i++ {
			_, later := all[fmt.Sprintf("db-%d", i)]
			if before, ok := all[fmt.Sprintf("db-%d", i-1)]; later && (!ok || !podReady(before)) {
				t.Fatalf("db-%d came before db-%d was ready", i, i-1)
			}
		}
		return len(all) == 3 && podReady(all["db-2"])
	})
	if pod, err := pods.Get(c.ctx, "db-1", metav1.GetOptions{}); err != nil || pod.Spec.Hostname != "db-1" || pod.Spec.Subdomain != "db" {
		t.Errorf("db-1 has no stable identity: %+v, %v", pod.Spec, err)
	}
	if _, err := in[*corev1.PersistentVolumeClaim](c).Get(c.ctx, "data-db-2", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	change(c, sets, "db", func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "db:2" })
	await(c, sets, "db", "updated", func(set *appsv1.StatefulSet) bool {
		return set.Status.ObservedGeneration == set.Generation && set.Status.UpdatedReplicas == 3 && set.Status.ReadyReplicas == 3 &&
			set.Status.CurrentRevision == set.Status.UpdateRevision
	})
	change(c, sets, "db", func(set *appsv1.StatefulSet) { *set.Spec.Replicas = 1 })
	awaitEach(c, pods, metav1.ListOptions{}, "db-0 alone", func(all map[string]*corev1.Pod) bool { return len(all) == 1 && all["db-0"] != nil })
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func TestDaemonSetCoversEligibleNodes(t *testing.T) {
	c := newCluster(t, 3)
	c.startManager()
	nodes, sets := client.For[*corev1.Node](c.client), in[*appsv1.DaemonSet](c)
	awaitEach(c, nodes, metav1.ListOptions{}, "three nodes", func(all map[string]*corev1.Node) bool { return len(all) == 3 })
	change(c, nodes, "node-1", func(n *corev1.Node) { n.Labels["disk"] = "ssd" })
	change(c, nodes, "node-2", func(n *corev1.Node) { n.Labels["disk"] = "ssd"; n.Spec.Unschedulable = true })
	template := podTemplate("agent:1")
	template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	create(c, sets, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{Selector: selectWeb(), Template: template}})
	covered := func(n int32) func(*appsv1.DaemonSet) bool {
		return func(set *appsv1.DaemonSet) bool {
			s := set.Status
			return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled == n && s.NumberAvailable == n && s.UpdatedNumberScheduled == n && s.NumberMisscheduled == 0
		}
	}
	await(c, sets, "agent", "on two nodes, one of them cordoned", covered(2))
	change(c, nodes, "node-3", func(n *corev1.Node) { n.Labels["disk"] = "ssd" })
	await(c, sets, "agent", "on three nodes", covered(3))
	change(c, sets, "agent", func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "agent:2" })
	await(c, sets, "agent", "updated", covered(3))
	change(c, nodes, "node-1", func(n *corev1.Node) { delete(n.Labels, "disk") })
	awaitEach(c, in[*corev1.Pod](c), metav1.ListOptions{}, "not on node-1", func(all map[string]*corev1.Pod) bool {
		var on []string
		for _, pod := range all {
			on = append(on, pod.Spec.NodeName)
		}
		slices.Sort(on)
		return strings.Join(on, ",") == "node-2,node-3"
	})
}
