package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

// componentUsers are the users whose rights testdata/workloads.yaml makes the components
// of `up` use.
var componentUsers = []string{
	"system:kube-controller-manager", "system:kube-proxy", "system:kube-scheduler", "system:node:node-1", "system:node:node-2",
	"system:serviceaccount:kube-system:cronjob-controller", "system:serviceaccount:kube-system:daemon-set-controller",
	"system:serviceaccount:kube-system:deployment-controller", "system:serviceaccount:kube-system:disruption-controller",
	"system:serviceaccount:kube-system:endpoint-controller", "system:serviceaccount:kube-system:endpointslice-controller",
	"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:job-controller",
	"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:node-controller",
	"system:serviceaccount:kube-system:pvc-protection-controller", "system:serviceaccount:kube-system:replicaset-controller",
	"system:serviceaccount:kube-system:resourcequota-controller", "system:serviceaccount:kube-system:statefulset-controller",
	"system:serviceaccount:kube-system:ttl-after-finished-controller",
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
	c, err := client.FromKubeconfig(up.kubeconfig, client.Options{UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if err := awaitReadyNodes(ctx, c, 2); err != nil {
		t.Fatal(err)
	}
	levelwiretest.ApplyFiles(t, c, "testdata/workloads.yaml")
	exercise(ctx, t, c)
	c.CloseIdleConnections()
	up.stop()
	checkAudit(t, log)
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
	running := func() error {
		return errorsOf(
			stateOf(ctx, c, "web", func(d *appsv1.Deployment) bool {
				return d.Status.AvailableReplicas == 2 && d.Status.UpdatedReplicas == 2
			}),
			stateOf(ctx, c, "agent", func(d *appsv1.DaemonSet) bool { return d.Status.NumberReady == 2 }),
			stateOf(ctx, c, "db", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == *s.Spec.Replicas }),
			stateOf(ctx, c, "web", func(b *policyv1.PodDisruptionBudget) bool { return b.Status.CurrentHealthy == 2 }),
			stateOf(ctx, c, "agent", func(b *policyv1.PodDisruptionBudget) bool {
				return slices.ContainsFunc(b.Status.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, "does not implement the scale") })
			}),
			stateOf(ctx, c, "web", func(e *corev1.Endpoints) bool { return len(e.Subsets) == 1 && len(e.Subsets[0].Addresses) == 2 }), //nolint:staticcheck // It is written for clients that read it.
			gone[*batchv1.Job](ctx, c, "once"),
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
	slices, err := client.For[*discoveryv1.EndpointSlice](c).Namespace("work").List(ctx, metav1.ListOptions{})
	if err != nil || len(slices.Items) != 1 {
		t.Errorf("%d EndpointSlices, %v", len(slices.Items), err)
	}
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

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns an error unless the object is as wanted.
func stateOf[T client.Object](ctx context.Context, c *client.Client, name string, wanted func(T) bool) error {
	obj, err := client.For[T](c).Namespace("work").Get(ctx, name, metav1.GetOptions{})
	if err == nil && !wanted(obj) {
		err = fmt.Errorf("%T %s: %+v", obj, name, obj)
	}
	return err
}

// gone returns an error unless there is no such object.
func gone[T client.Object](ctx context.Context, c *client.Client, name string) error {
	obj, err := client.For[T](c).Namespace("work").Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("%T %s is there", obj, name)
	}
	return err
}

// checkAudit reads who asked for what, and what was refused.
func checkAudit(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	requests := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(event.UserAgent, "levelwire-") {
			continue // it is the test's own
		}
		requests[event.User.Username]++
		if slices.Contains(event.User.Groups, "system:masters") {
			t.Errorf("%s is an administrator: %s %s", event.UserAgent, event.Verb, event.RequestURI)
		}
		if event.Annotations["authorization.k8s.io/decision"] != "allow" {
			t.Errorf("%s may not %s %s: %s", event.User.Username, event.Verb, event.RequestURI, event.Annotations["authorization.k8s.io/reason"])
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, user := range componentUsers {
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
