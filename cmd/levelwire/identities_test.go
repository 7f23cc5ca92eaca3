package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/levelwiretest"
)

// componentUsers are the users whose rights testdata/workloads.yaml makes the components
// of `up` use.
var componentUsers = []string{
	"system:kube-controller-manager", "system:kube-proxy", "system:kube-scheduler", "system:node:node-1", "system:node:node-2",
	"system:serviceaccount:kube-system:cronjob-controller", "system:serviceaccount:kube-system:daemon-set-controller",
	"system:serviceaccount:kube-system:deployment-controller", "system:serviceaccount:kube-system:disruption-controller",
	"system:serviceaccount:kube-system:endpoint-controller", "system:serviceaccount:kube-system:endpointslice-controller",
	"system:serviceaccount:kube-system:endpointslicemirroring-controller",
	"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
	"system:serviceaccount:kube-system:job-controller",
	"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:node-controller",
	"system:serviceaccount:kube-system:pv-protection-controller", "system:serviceaccount:kube-system:pvc-protection-controller",
	"system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccount:kube-system:replication-controller",
	"system:serviceaccount:kube-system:resourcequota-controller", "system:serviceaccount:kube-system:statefulset-controller",
	"system:serviceaccount:kube-system:ttl-after-finished-controller",
	"system:serviceaccount:kube-system:volumeattributesclass-protection-controller",
}

// metricsServer is another such user, of the only part that no process of its own runs.
const metricsServer = "system:serviceaccount:kube-system:metrics-server"

// testAgent is what the requests of the tests themselves say that they are.
const testAgent = "test"

// installed is what the administrator's client of `up` asks for, once: objects and verbs.
var installed = map[string][]string{
	"apiservices.apiregistration.k8s.io /v1beta1.metrics.k8s.io":                    {"get", "create", "delete"},
	"clusterrolebindings.rbac.authorization.k8s.io /system:metrics-server":          {"get", "create"},
	"clusterroles.rbac.authorization.k8s.io /system:aggregated-metrics-reader":      {"get", "create"},
	"clusterroles.rbac.authorization.k8s.io /system:metrics-server":                 {"get", "create"},
	"endpointslices.discovery.k8s.io kube-system/metrics-server":                    {"get", "create"},
	"rolebindings.rbac.authorization.k8s.io kube-system/metrics-server-auth-reader": {"get", "create"},
	"services. kube-system/metrics-server":                                          {"get", "create"},
}

// TestComponentsHaveOnlyTheirRoles: the components of `up` do their work, each as the user
// that Kubernetes runs it as, and no request of theirs is refused, or made as an
// administrator. The audit log is the witness.
func TestComponentsHaveOnlyTheirRoles(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testTimeout)
	defer cancel()
	log := filepath.Join(t.TempDir(), "audit.log")
	up := startUp(t, append(auditFlags(t, log), "--nodes=2", "--log-level=error")...)
	c, err := client.FromKubeconfig(up.kubeconfig, client.Options{UserAgent: testAgent})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if err := awaitReadyNodes(ctx, c, 2); err != nil {
		t.Fatal(err)
	}
	readMetrics(ctx, t, c)
	levelwiretest.ApplyFiles(t, c, "testdata/workloads.yaml")
	exercise(ctx, t, c)
	c.CloseIdleConnections()
	up.stop()
	checkAudit(t, log, append([]string{metricsServer}, componentUsers...))
}

// readMetrics reads what the pods of the cluster use, when it is served.
func readMetrics(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	converge(ctx, t, func() error {
		service, err := client.For[*apiregistrationv1.APIService](c).Get(ctx, "v1beta1.metrics.k8s.io", metav1.GetOptions{})
		if err == nil && !slices.ContainsFunc(service.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
			return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
		}) {
			err = fmt.Errorf("%+v", service.Status)
		}
		return err
	})
	response, err := c.Raw(ctx, client.RawRequest{Path: "/apis/metrics.k8s.io/v1beta1/pods"})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Error(response.Status)
	}
}

// auditFlags are the flags of a server that writes who asked for what to a file.
func auditFlags(t *testing.T, log string) []string {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--audit-policy-file", policy, "--audit-log-path", log}
}

// exercise has the controllers start the workloads, change them and take them away.
func exercise(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	await := func(check func() error) { t.Helper(); converge(ctx, t, check) }
	exerciseStorage(ctx, t, c)
	running := func() error {
		return errorsOf(
			stateOf(ctx, c, "web", func(d *appsv1.Deployment) bool {
				return d.Status.AvailableReplicas == 2 && d.Status.UpdatedReplicas == 2
			}),
			stateOf(ctx, c, "agent", func(d *appsv1.DaemonSet) bool { return d.Status.NumberReady == 2 }),
			stateOf(ctx, c, "old", func(r *corev1.ReplicationController) bool { return r.Status.AvailableReplicas == 1 }),
			stateOf(ctx, c, "db", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == *s.Spec.Replicas }),
			stateOf(ctx, c, "web", func(b *policyv1.PodDisruptionBudget) bool { return b.Status.CurrentHealthy == 2 }),
			stateOf(ctx, c, "agent", func(b *policyv1.PodDisruptionBudget) bool {
				return slices.ContainsFunc(b.Status.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, "does not implement the scale") })
			}),
			stateOf(ctx, c, "web", func(h *autoscalingv2.HorizontalPodAutoscaler) bool { return len(h.Status.Conditions) > 0 }),
			stateOf(ctx, c, "web", func(e *corev1.Endpoints) bool { return len(e.Subsets) == 1 && len(e.Subsets[0].Addresses) == 2 }), //nolint:staticcheck // It is written for clients that read it.
			gone[*batchv1.Job](ctx, c, "once"),
			goneWithItsNode(ctx, c),
		)
	}
	await(running)
	// Its controller has missed an hour, and starts the Job that is due.
	crons := client.For[*batchv1.CronJob](c).Namespace("work")
	await(func() error {
		cron, err := crons.Get(ctx, "hourly", metav1.GetOptions{})
		if err != nil || cron.Status.LastSuccessfulTime != nil {
			return err
		}
		if len(cron.Status.Active) == 0 && (cron.Status.LastScheduleTime == nil || time.Since(cron.Status.LastScheduleTime.Time) > 90*time.Minute) {
			cron.Status.LastScheduleTime = &metav1.Time{Time: time.Now().Add(-2 * time.Hour)}
			if _, err := crons.UpdateStatus(ctx, cron, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return fmt.Errorf("the CronJob has the status %+v", cron.Status)
	})
	for _, patch := range []struct{ resource, name, patch string }{
		{"deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"registry.example/web:2"}]}}}}`},
		{"statefulsets", "db", `{"spec":{"replicas":1}}`},
	} {
		await(func() error {
			var err error
			if patch.resource == "deployments" {
				_, err = client.For[*appsv1.Deployment](c).Namespace("work").Patch(ctx, patch.name, "application/strategic-merge-patch+json", []byte(patch.patch), metav1.PatchOptions{})
			} else {
				_, err = client.For[*appsv1.StatefulSet](c).Namespace("work").Patch(ctx, patch.name, "application/strategic-merge-patch+json", []byte(patch.patch), metav1.PatchOptions{})
			}
			return err
		})
	}
	await(func() error {
		return errorsOf(running(), gone[*corev1.PersistentVolumeClaim](ctx, c, "data-db-1"),
			stateOf(ctx, c, "web", func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration == d.Generation }))
	})
	await(func() error { // that of the Service web, and one that mirrors the Endpoints outside
		slices, err := client.For[*discoveryv1.EndpointSlice](c).Namespace("work").List(ctx, metav1.ListOptions{})
		if err == nil && len(slices.Items) != 2 {
			err = fmt.Errorf("%d EndpointSlices", len(slices.Items))
		}
		return err
	})
	// What belongs to it goes by the garbage collector, the rest with the namespace.
	if err := client.For[*appsv1.Deployment](c).Namespace("work").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(func() error {
		sets, err := client.For[*appsv1.ReplicaSet](c).Namespace("work").List(ctx, metav1.ListOptions{})
		if err == nil && len(sets.Items) > 0 {
			err = fmt.Errorf("%d ReplicaSets", len(sets.Items))
		}
		return err
	})
	namespaces := client.For[*corev1.Namespace](c)
	if err := namespaces.Delete(ctx, "work", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(func() error {
		_, err := namespaces.Get(ctx, "work", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace is there: %v", err)
	})
}

// exerciseStorage deletes a volume and a class of volumes: what they are protected by goes, and
// they with it.
func exerciseStorage(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	volumes, classes := client.For[*corev1.PersistentVolume](c), client.For[*storagev1.VolumeAttributesClass](c)
	if err := errorsOf(volumes.Delete(ctx, "disk", metav1.DeleteOptions{}), classes.Delete(ctx, "fast", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}
	converge(ctx, t, func() error {
		return errorsOf(gone[*corev1.PersistentVolume](ctx, c, "disk"), gone[*storagev1.VolumeAttributesClass](ctx, c, "fast"))
	})
}

// goneWithItsNode returns an error while there is the pod of a node that does not exist: after
// 40 seconds it is removed, which short tests do not wait for.
func goneWithItsNode(ctx context.Context, c *client.Client) error {
	if testing.Short() {
		return nil
	}
	return gone[*corev1.Pod](ctx, c, "left")
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// inWork is the endpoint of a kind in the namespace of the workloads, if it has namespaces.
func inWork[T client.Object](c *client.Client) client.Resource[T] {
	api := client.For[T](c)
	if mapping, ok := api.Mapping(); ok && mapping.Scope == scheme.Cluster {
		return api
	}
	return api.Namespace("work")
}

// stateOf returns an error unless the object is as wanted.
func stateOf[T client.Object](ctx context.Context, c *client.Client, name string, wanted func(T) bool) error {
	obj, err := inWork[T](c).Get(ctx, name, metav1.GetOptions{})
	if err == nil && !wanted(obj) {
		err = fmt.Errorf("%T %s: %+v", obj, name, obj)
	}
	return err
}

// gone returns an error unless there is no such object.
func gone[T client.Object](ctx context.Context, c *client.Client, name string) error {
	obj, err := inWork[T](c).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("%T %s is there", obj, name)
	}
	return err
}

// checkAudit reads who asked for what, and what was refused, of all requests but those of the
// test. All users and no others must have asked for something.
func checkAudit(t *testing.T, path string, users []string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	requests, installs := map[string]int{}, map[string][]string{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if event.UserAgent == testAgent {
			continue
		}
		switch masters := slices.Contains(event.User.Groups, "system:masters"); {
		case masters && strings.HasPrefix(event.UserAgent, "levelwire-"+installerAgent+"/") && event.ObjectRef != nil:
			object := fmt.Sprintf("%s.%s %s/%s", event.ObjectRef.Resource, event.ObjectRef.APIGroup, event.ObjectRef.Namespace, event.ObjectRef.Name)
			installs[object] = append(installs[object], event.Verb)
			continue
		case masters:
			t.Errorf("%s is an administrator: %s %s", event.UserAgent, event.Verb, event.RequestURI)
		}
		requests[event.User.Username]++
		if event.Annotations["authorization.k8s.io/decision"] != "allow" {
			t.Errorf("%s may not %s %s: %s", event.User.Username, event.Verb, event.RequestURI, event.Annotations["authorization.k8s.io/reason"])
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(users, metricsServer) != (len(installs) > 0) || len(installs) > 0 && !maps.EqualFunc(installs, installed, slices.Equal) {
		t.Errorf("the administrator has asked for %q, want %q", installs, installed)
	}
	for _, user := range users {
		if requests[user] == 0 {
			t.Errorf("%s has asked for nothing", user)
		}
		delete(requests, user)
	}
	if len(requests) > 0 {
		t.Errorf("other users of components: %v", requests)
	}
}

// TestComponentsMayNotDoMore: what is outside of a component's role is refused, whichever
// of the default authorizers would have to allow it.
func TestComponentsMayNotDoMore(t *testing.T) {
	t.Parallel()
	s := levelwiretest.Start(t)
	const account = "system:serviceaccount:kube-system:"
	for _, test := range []struct{ user, groups, verb, group, resource, namespace, name string }{
		{account + "deployment-controller", "", "create", "", "pods", "default", ""},
		{account + "deployment-controller", "", "get", "", "secrets", "default", "s"},
		{account + "replicaset-controller", "", "update", "apps", "deployments", "default", "d"},
		{account + "job-controller", "", "delete", "batch", "jobs", "default", "j"},
		{account + "ttl-after-finished-controller", "", "update", "batch", "jobs", "default", "j"},
		{account + "endpoint-controller", "", "update", "discovery.k8s.io", "endpointslices", "default", "e"},
		{account + "endpointslicemirroring-controller", "", "update", "", "endpoints", "default", "e"},
		{account + "namespace-controller", "", "create", "", "configmaps", "default", ""},
		{account + "generic-garbage-collector", "", "create", "", "pods", "default", ""},
		{account + "disruption-controller", "", "get", "apps", "daemonsets", "default", "d"},
		{"system:kube-controller-manager", "", "delete", "", "pods", "default", "p"},
		{"system:kube-scheduler", "", "get", "", "secrets", "default", "s"},
		{"system:kube-scheduler", "", "create", "", "pods", "default", ""},
		{"system:kube-proxy", "", "list", "", "pods", "", ""},
		{"system:node:node-1", "system:nodes", "get", "", "secrets", "default", "s"},
		{"system:node:node-1", "system:nodes", "list", "", "secrets", "", ""},
		{"system:node:node-1", "system:nodes", "update", "coordination.k8s.io", "leases", "kube-node-lease", "node-2"},
		{"system:node:node-1", "", "list", "", "pods", "", ""},
	} {
		c, err := client.New(s.UserConfig(test.user, strings.Fields(test.groups)...), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		review, err := client.For[*authorizationv1.SelfSubjectAccessReview](c).Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: test.verb, Group: test.group, Resource: test.resource, Namespace: test.namespace, Name: test.name,
			}},
		}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed {
			t.Errorf("%+v: %+v, %v", test, review.Status, err)
		}
		c.CloseIdleConnections()
	}
	// The same by a request, not a review.
	c, err := client.New(s.UserConfig(account+"deployment-controller", "system:serviceaccounts"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if _, err := client.For[*corev1.Secret](c).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a list of all secrets: %v", err)
	}
}
