package controller_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/client"
)

// newService returns a Service that selects pods with a label app, or none if it is "".
func newService(name, app string) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if app != "" {
		service.Spec.Selector = map[string]string{"app": app}
	}
	return service
}

func newSlice(name string, service *corev1.Service) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{}, Ports: []discoveryv1.EndpointPort{},
	}
	if service != nil {
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
		slice.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))}
	}
	return slice
}

func slicesCreated(c *cluster) func() []string {
	return happened(c, in[*discoveryv1.EndpointSlice](c), newSlice("last", nil), added)
}

// awaitSlice waits for a slice of a Service.
func awaitSlice(c *cluster, service, what string, is func(*discoveryv1.EndpointSlice) bool) {
	c.t.Helper()
	awaitEach(c, in[*discoveryv1.EndpointSlice](c), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service}, "a slice of "+service+" "+what,
		func(all map[string]*discoveryv1.EndpointSlice) bool {
			for _, slice := range all {
				if is(slice) {
					return true
				}
			}
			return false
		})
}

func anySlice(*discoveryv1.EndpointSlice) bool { return true }

// setPodStatus says what a kubelet would say of a pod.
func setPodStatus(c *cluster, name string, ready corev1.ConditionStatus) {
	c.t.Helper()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.9.8.7", PodIPs: []corev1.PodIP{{IP: "10.9.8.7"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := in[*corev1.Pod](c).Patch(c.ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatal(err)
	}
}

func createPod(c *cluster, name string, change func(*corev1.Pod)) *corev1.Pod {
	c.t.Helper()
	pod := newPod(name)
	pod.Labels = selectWeb().MatchLabels
	if change != nil {
		change(pod)
	}
	return create(c, in[*corev1.Pod](c), pod)
}

// createJob creates a Job of a CronJob that the Job controller leaves alone.
func createJob(c *cluster, name string, cron *batchv1.CronJob) *batchv1.Job {
	c.t.Helper()
	return create(c, in[*batchv1.Job](c), newJobOf(name, cron))
}

func newJobOf(name string, cron *batchv1.CronJob) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}}
	job.Spec.Template, job.Spec.ManagedBy = podTemplate("work:1"), new("example.com/none")
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if cron != nil {
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	}
	return job
}

// completeJob says that a Job has succeeded, so many hours ago.
func completeJob(c *cluster, name string, hours int) {
	c.t.Helper()
	jobs := in[*batchv1.Job](c)
	job, err := jobs.Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	at := metav1.NewTime(time.Now().Add(-time.Duration(hours) * time.Hour))
	job.Status.StartTime, job.Status.CompletionTime = &at, &at
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	if _, err := jobs.UpdateStatus(c.ctx, job, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// createYearly creates a CronJob whose last time, two New Years ago, is not served yet. A test is
// over before the next one.
func createYearly(c *cluster, change func(*batchv1.CronJob)) *batchv1.CronJob {
	c.t.Helper()
	crons := in[*batchv1.CronJob](c)
	cron := newCron("c", batchv1.ForbidConcurrent)
	cron.Spec.Schedule, cron.Spec.Suspend = "0 0 1 1 *", new(true)
	change(cron)
	cron = create(c, crons, cron)
	cron.Status.LastScheduleTime = &metav1.Time{Time: time.Now().AddDate(-2, 0, 0)}
	cron.Status.Active = []corev1.ObjectReference{}
	cron, err := crons.UpdateStatus(c.ctx, cron, metav1.UpdateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return cron
}

// createOldSet creates a ReplicaSet of a former template of a Deployment.
func createOldSet(c *cluster, name, image string, d *appsv1.Deployment) {
	c.t.Helper()
	set := newSet(name, 0)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "of": name}}
	set.Spec.Template = podTemplate(image)
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	set.Labels = set.Spec.Selector.MatchLabels
	if d != nil {
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	}
	create(c, in[*appsv1.ReplicaSet](c), set)
}

// TestOthersWithAWatchBehind: what is decided without the first change cannot be undone when it comes, or no later
// event leads to it.
func TestOthersWithAWatchBehind(t *testing.T) {
	for name, step := range map[string]heldStep{
		"EndpointSlice of a Service that is gone": {
			held: "services",
			before: func(c *cluster) {
				create(c, in[*corev1.Service](c), newService("web", "web"))
				awaitSlice(c, "web", "there", anySlice)
			},
			first:  func(c *cluster) { remove(c, in[*corev1.Service](c), "web", metav1.DeleteOptions{}) },
			second: func(c *cluster) {}, // the garbage collector deletes the slice
			end: func(c *cluster) {
				create(c, in[*corev1.Service](c), newService("later", "later"))
				awaitSlice(c, "later", "there", anySlice)
			},
			done: slicesCreated,
			want: 1, // of the later Service
		},
		"EndpointSlice that another leader has made": {
			held:   "endpointslices",
			before: func(c *cluster) { create(c, in[*corev1.Service](c), newService("web", "")) },
			first: func(c *cluster) {
				service, err := in[*corev1.Service](c).Get(c.ctx, "web", metav1.GetOptions{})
				if err != nil {
					c.t.Fatal(err)
				}
				create(c, in[*discoveryv1.EndpointSlice](c), newSlice("web-1", service))
			},
			second: func(c *cluster) {
				change(c, in[*corev1.Service](c), "web", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "web"} })
			},
			end: func(c *cluster) {
				createPod(c, "web", nil)
				setPodStatus(c, "web", corev1.ConditionTrue)
				awaitSlice(c, "web", "with the pod", func(s *discoveryv1.EndpointSlice) bool { return len(s.Endpoints) == 1 })
			},
			done: slicesCreated,
			want: 2, // the other leader's, and one for the pod's port
		},
		"EndpointSlice of Endpoints that are gone": {
			held: "endpoints",
			before: func(c *cluster) {
				create(c, in[*corev1.Service](c), newService("web", ""))
				create(c, in[*legacyEndpoints](c), newEndpoints("web", "10.0.0.1"))
				awaitMirrored(c, "web", "the address", "10.0.0.1")
			},
			first:  func(c *cluster) { remove(c, in[*legacyEndpoints](c), "web", metav1.DeleteOptions{}) },
			second: func(c *cluster) {}, // the garbage collector deletes the slice
			end: func(c *cluster) {
				create(c, in[*corev1.Service](c), newService("later", ""))
				create(c, in[*legacyEndpoints](c), newEndpoints("later", "10.0.0.2"))
				awaitMirrored(c, "later", "the address", "10.0.0.2")
			},
			done: slicesCreated,
			want: 1, // of the later Endpoints
		},
		"EndpointSlice of Endpoints that have just come": {
			held: "endpoints",
			before: func(c *cluster) {
				create(c, in[*corev1.Service](c), newService("web", ""))
			},
			first: func(c *cluster) { create(c, in[*legacyEndpoints](c), newEndpoints("web", "10.0.0.1")) },
			second: func(c *cluster) { // another leader's
				source, err := in[*legacyEndpoints](c).Get(c.ctx, "web", metav1.GetOptions{})
				if err != nil {
					c.t.Fatal(err)
				}
				slice := newSlice("web-1", nil)
				slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: mirroring}
				slice.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(source, corev1.SchemeGroupVersion.WithKind("Endpoints"))}
				create(c, in[*discoveryv1.EndpointSlice](c), slice)
			},
			end: func(c *cluster) { awaitMirrored(c, "web", "the address", "10.0.0.1") },
			done: func(c *cluster) func() []string {
				return happened(c, in[*discoveryv1.EndpointSlice](c), newSlice("last", nil), deleted)
			},
		},
		"zone of a node that has just come": {
			held:   "nodes",
			before: func(c *cluster) { create(c, in[*corev1.Service](c), newService("web", "web")) },
			first: func(c *cluster) {
				create(c, client.For[*corev1.Node](c.client), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "far", Labels: map[string]string{corev1.LabelTopologyZone: "z"}}})
			},
			second: func(c *cluster) {
				createPod(c, "web", func(pod *corev1.Pod) { pod.Spec.NodeName = "far" })
				setPodStatus(c, "web", corev1.ConditionTrue)
			},
			end: func(c *cluster) {
				awaitSlice(c, "web", "with the pod", func(s *discoveryv1.EndpointSlice) bool { return len(s.Endpoints) == 1 })
			},
			done: func(c *cluster) func() []string {
				return happened(c, in[*discoveryv1.EndpointSlice](c), newSlice("last", nil), func(ev client.WatchEvent[*discoveryv1.EndpointSlice]) bool {
					return slices.ContainsFunc(ev.Object.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Zone == nil })
				})
			},
		},
		"PodDisruptionBudget": {
			held: "pods",
			before: func(c *cluster) {
				for _, name := range []string{"a", "b"} {
					createPod(c, name, nil)
					setPodStatus(c, name, corev1.ConditionTrue)
				}
				create(c, in[*policyv1.PodDisruptionBudget](c), newBudget("before", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))}))
				awaitBudget(c, "before", "1 allowed, 2 of 1 healthy, 2 expected")
			},
			first: func(c *cluster) { setPodStatus(c, "b", corev1.ConditionFalse) },
			second: func(c *cluster) {
				create(c, in[*policyv1.PodDisruptionBudget](c), newBudget("web", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))}))
			},
			end: func(c *cluster) { awaitBudget(c, "web", "0 allowed, 1 of 1 healthy, 2 expected") },
			done: func(c *cluster) func() []string {
				last := newBudget("last", policyv1.PodDisruptionBudgetSpec{})
				return happened(c, in[*policyv1.PodDisruptionBudget](c), last, func(ev client.WatchEvent[*policyv1.PodDisruptionBudget]) bool {
					return ev.Object.Name == "web" && ev.Object.Status.DisruptionsAllowed > 0
				})
			},
		},
		"CronJob that is suspended": {
			held: "cronjobs",
			before: func(c *cluster) {
				crons := in[*batchv1.CronJob](c)
				cron := createYearly(c, func(*batchv1.CronJob) {})
				job := createJob(c, "runs", cron)
				cron.Status.Active = []corev1.ObjectReference{{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID}}
				if _, err := crons.UpdateStatus(c.ctx, cron, metav1.UpdateOptions{}); err != nil {
					c.t.Fatal(err)
				}
				change(c, crons, "c", func(cron *batchv1.CronJob) { cron.Spec.Suspend = nil })
				awaitEach(c, in[*corev1.Event](c), metav1.ListOptions{FieldSelector: "reason=JobAlreadyActive"}, "the controller's wait for the job",
					func(all map[string]*corev1.Event) bool { return len(all) > 0 })
			},
			first: func(c *cluster) {
				change(c, in[*batchv1.CronJob](c), "c", func(cron *batchv1.CronJob) { cron.Spec.Suspend = new(true) })
			},
			second: func(c *cluster) {
				background := metav1.DeletePropagationBackground
				remove(c, in[*batchv1.Job](c), "runs", metav1.DeleteOptions{PropagationPolicy: &background})
			},
			end: func(c *cluster) { await(c, in[*batchv1.CronJob](c), "c", "without a job", running(0)) },
			done: func(c *cluster) func() []string {
				return happened(c, in[*batchv1.Job](c), newJobOf("last", nil), added)
			},
		},
		"history of a CronJob": {
			held: "cronjobs",
			before: func(c *cluster) {
				cron := createYearly(c, func(cron *batchv1.CronJob) { cron.Spec.SuccessfulJobsHistoryLimit = new(int32(1)) })
				createJob(c, "first", cron)
				createJob(c, "second", cron)
				completeJob(c, "first", 3)
				await(c, in[*batchv1.CronJob](c), "c", "a success", func(cron *batchv1.CronJob) bool { return cron.Status.LastSuccessfulTime != nil })
			},
			first: func(c *cluster) {
				change(c, in[*batchv1.CronJob](c), "c", func(cron *batchv1.CronJob) { cron.Spec.SuccessfulJobsHistoryLimit = new(int32(2)) })
			},
			second: func(c *cluster) { completeJob(c, "second", 1) },
			end: func(c *cluster) {
				await(c, in[*batchv1.CronJob](c), "c", "another success", func(cron *batchv1.CronJob) bool {
					return time.Since(cron.Status.LastSuccessfulTime.Time) < 2*time.Hour
				})
			},
			done: func(c *cluster) func() []string {
				return happened(c, in[*batchv1.Job](c), newJobOf("last", nil), deleted)
			},
		},
		"history of a Deployment": {
			held: "deployments",
			before: func(c *cluster) {
				d := newDeployment("web", 0)
				d.Spec.RevisionHistoryLimit = new(int32(1))
				d = create(c, in[*appsv1.Deployment](c), d)
				createOldSet(c, "old", "web:0", d)
				await(c, in[*appsv1.Deployment](c), "web", "rolled out", rolledOut)
				c.deploymentSeen()
			},
			first: func(c *cluster) {
				change(c, in[*appsv1.Deployment](c), "web", func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(2)) })
			},
			second: func(c *cluster) {
				d, err := in[*appsv1.Deployment](c).Get(c.ctx, "web", metav1.GetOptions{})
				if err != nil {
					c.t.Fatal(err)
				}
				createOldSet(c, "older", "web:00", d)
			},
			end: func(c *cluster) {
				await(c, in[*appsv1.Deployment](c), "web", "seen", func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration == d.Generation })
			},
			done: func(c *cluster) func() []string {
				last := newSet("last", 0)
				last.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "last"}}
				last.Spec.Template.Labels = last.Spec.Selector.MatchLabels
				return happened(c, in[*appsv1.ReplicaSet](c), last, deleted)
			},
		},
		"claim of a StatefulSet": {
			held: "statefulsets",
			before: func(c *cluster) {
				create(c, in[*appsv1.StatefulSet](c), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.StatefulSetSpec{
					Replicas: new(int32(1)), Selector: selectWeb(), Template: podTemplate("web:1"),
					PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
						WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
					},
					VolumeClaimTemplates: []corev1.PersistentVolumeClaim{newClaim("data")},
				}})
				c.awaitPods(1)
				claim := newClaim("data-web-1")
				create(c, in[*corev1.PersistentVolumeClaim](c), &claim)
			},
			first: func(c *cluster) {
				change(c, in[*appsv1.StatefulSet](c), "web", func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(2)) })
			},
			second: func(c *cluster) { // another leader's
				set, err := in[*appsv1.StatefulSet](c).Get(c.ctx, "web", metav1.GetOptions{})
				if err != nil {
					c.t.Fatal(err)
				}
				createPod(c, "web-1", func(pod *corev1.Pod) {
					pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
				})
			},
			end: func(c *cluster) {
				await(c, in[*appsv1.StatefulSet](c), "web", "seen", func(s *appsv1.StatefulSet) bool {
					return s.Status.ObservedGeneration == s.Generation && s.Status.Replicas > 0
				})
			},
			done: func(c *cluster) func() []string {
				last := newClaim("last")
				return happened(c, in[*corev1.PersistentVolumeClaim](c), &last, func(ev client.WatchEvent[*corev1.PersistentVolumeClaim]) bool {
					return len(ev.Object.OwnerReferences) > 0
				})
			},
		},
		"claim of a pod": {
			held:  "pods",
			nodes: 1,
			before: func(c *cluster) {
				claim := newClaim("data")
				create(c, in[*corev1.PersistentVolumeClaim](c), &claim)
			},
			first: func(c *cluster) {
				createPod(c, "user", func(pod *corev1.Pod) {
					onNode1(pod)
					pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
					}}}
				})
			},
			second: func(c *cluster) { remove(c, in[*corev1.PersistentVolumeClaim](c), "data", metav1.DeleteOptions{}) },
			end: func(c *cluster) {
				claims, free := in[*corev1.PersistentVolumeClaim](c), newClaim("free")
				create(c, claims, &free)
				remove(c, claims, "free", metav1.DeleteOptions{})
				awaitClaims(c, "data")
			},
			done: func(c *cluster) func() []string {
				last := newClaim("last")
				return happened(c, in[*corev1.PersistentVolumeClaim](c), &last, func(ev client.WatchEvent[*corev1.PersistentVolumeClaim]) bool {
					return ev.Object.Name == "data" && len(ev.Object.Finalizers) == 0
				})
			},
		},
		"eviction from a node whose taint is gone": {
			held:  "nodes",
			nodes: 1,
			before: func(c *cluster) {
				taintNode(c, "maintenance")
				createPod(c, "evicted", onNode1)
				c.awaitPods(0) // the controller has seen the taint
			},
			first: func(c *cluster) {
				change(c, client.For[*corev1.Node](c.client), "node-1", func(node *corev1.Node) { node.Spec.Taints = nil })
			},
			second: func(c *cluster) {
				createPod(c, "stays", func(pod *corev1.Pod) {
					onNode1(pod)
					pod.Spec.Tolerations = []corev1.Toleration{{Key: "later", Operator: corev1.TolerationOpExists}}
				})
			},
			end: func(c *cluster) {
				taintNode(c, "later")
				createPod(c, "leaves", onNode1)
				awaitEach(c, in[*corev1.Pod](c), metav1.ListOptions{}, "one pod has left", func(all map[string]*corev1.Pod) bool { return all["leaves"] == nil })
			},
			done: func(c *cluster) func() []string {
				return happened(c, in[*corev1.Pod](c), newPod("last"), func(ev client.WatchEvent[*corev1.Pod]) bool { return ev.Object.Name == "stays" && deleted(ev) })
			},
		},
		"pod of a node that is ready again": {
			held: "nodes",
			before: func(c *cluster) {
				create(c, client.For[*corev1.Node](c.client), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "far"}})
				setNodeReady(c, "far", corev1.ConditionFalse)
				for _, name := range []string{"marked", "web"} {
					createPod(c, name, func(pod *corev1.Pod) {
						pod.Spec.NodeName = "far"
						pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
					})
				}
				await(c, client.For[*corev1.Node](c.client), "far", "not ready", notReady)
				// The controller has seen the taints that it has written: without them it would write them
				// again, in vain, and do nothing else.
				setPodStatus(c, "marked", corev1.ConditionTrue)
				await(c, in[*corev1.Pod](c), "marked", "not ready", markedNotReady)
			},
			first:  func(c *cluster) { setNodeReady(c, "far", corev1.ConditionTrue) },
			second: func(c *cluster) { setPodStatus(c, "web", corev1.ConditionTrue) },
			end: func(c *cluster) {
				await(c, client.For[*corev1.Node](c.client), "far", "ready", func(node *corev1.Node) bool { return !notReady(node) })
			},
			done: func(c *cluster) func() []string {
				return happened(c, in[*corev1.Pod](c), newPod("last"), func(ev client.WatchEvent[*corev1.Pod]) bool {
					return ev.Object.Name == "web" && markedNotReady(ev.Object)
				})
			},
		},
	} {
		t.Run(name, step.run)
	}
}

func notReady(node *corev1.Node) bool { return tainted(node, corev1.TaintNodeNotReady) }

// markedNotReady reports whether the node lifecycle controller has taken a pod out of its services.
func markedNotReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == "NodeNotReady" })
}

// setNodeReady says what a kubelet would say of a node.
func setNodeReady(c *cluster, name string, ready corev1.ConditionStatus) {
	c.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, Reason: "Kubelet", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}}})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := client.For[*corev1.Node](c.client).Patch(c.ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatal(err)
	}
}

func onNode1(pod *corev1.Pod) { pod.Spec.NodeName = "node-1" }

func taintNode(c *cluster, key string) {
	c.t.Helper()
	change(c, client.For[*corev1.Node](c.client), "node-1", func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoExecute}}
	})
}

func newClaim(name string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storageOf("1Gi"),
	}}
}
