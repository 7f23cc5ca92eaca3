package write_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/levelwire/levelwire/client"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect starts a server and returns a client of it.
func connect(t *testing.T) (context.Context, *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx, levelwiretest.Start(t).Client(client.Options{ContentType: client.Protobuf})
}

// web is what a program wants of a deployment.
func web(image string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
			},
		},
	}
}

func TestApplyOwnsWhatWasSet(t *testing.T) {
	ctx, cl := connect(t)
	deployments := client.For[*appsv1.Deployment](cl)
	applied, err := deployments.Apply(ctx, web("one"), metav1.ApplyOptions{FieldManager: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if applied.Spec.Template.Spec.Containers[0].Image != "one" || applied.UID == "" {
		t.Errorf("got %+v", applied)
	}
	owned := applied.ManagedFields[0].FieldsV1.GetRawString()
	for _, field := range []string{"creationTimestamp", "f:status", "f:strategy", "f:resources"} {
		if strings.Contains(owned, field) {
			t.Errorf("the manager owns %s: %s", field, owned)
		}
	}
	// What is applied no more is removed.
	two := web("one")
	two.Spec.Template.Spec.Containers[0].Args = []string{"-v"}
	if _, err := deployments.Apply(ctx, two, metav1.ApplyOptions{FieldManager: "me"}); err != nil {
		t.Fatal(err)
	}
	applied, err = deployments.Apply(ctx, web("two"), metav1.ApplyOptions{FieldManager: "me"})
	if c := applied.Spec.Template.Spec.Containers[0]; err != nil || c.Image != "two" || c.Args != nil {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestApplyConflictNamesFieldsAndManagers(t *testing.T) {
	ctx, cl := connect(t)
	deployments := client.For[*appsv1.Deployment](cl).Namespace("default")
	if _, err := deployments.Apply(ctx, web("one"), metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		t.Fatal(err)
	}
	_, err := deployments.Apply(ctx, web("two"), metav1.ApplyOptions{FieldManager: "second"})
	var conflict *client.ApplyConflictError
	if !errors.As(err, &conflict) || !apierrors.IsConflict(err) {
		t.Fatalf("got %v", err)
	}
	const image = `.spec.template.spec.containers[name="web"].image`
	if len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Field != image || conflict.Conflicts[0].Manager != "first" {
		t.Errorf("got %+v", conflict.Conflicts)
	}
	if text := err.Error(); !strings.Contains(text, image+` ("first")`) {
		t.Errorf("the error is %s", text)
	}
	forced, err := deployments.Apply(ctx, web("two"), metav1.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil || forced.Spec.Template.Spec.Containers[0].Image != "two" {
		t.Errorf("got %v, %v", forced, err)
	}
}

func TestApplyOfEveryForm(t *testing.T) {
	ctx, cl := connect(t)
	opts := metav1.ApplyOptions{FieldManager: "me"}
	maps := client.For[*corev1.ConfigMap](cl)
	if _, err := maps.Apply(ctx, coreapply.ConfigMap("a", "default").WithData(map[string]string{"k": ""}), opts); err != nil {
		t.Errorf("an apply configuration: %v", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"}}}
	dynamic := client.Dynamic(cl, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	if got, err := dynamic.Apply(ctx, u, opts); err != nil || got.Object["data"].(map[string]any)["k"] != "v" {
		t.Errorf("unstructured: %v, %v", got, err)
	}
	// A scale to 0 is said by a pointer.
	deployments := client.For[*appsv1.Deployment](cl)
	zero := web("one")
	zero.Spec.Replicas = new(int32)
	if got, err := deployments.Apply(ctx, zero, opts); err != nil || *got.Spec.Replicas != 0 {
		t.Errorf("no replicas: %v, %v", got, err)
	}
	status := appsapply.Deployment("web", "default").WithStatus(appsapply.DeploymentStatus().WithObservedGeneration(7))
	if got, err := deployments.ApplyStatus(ctx, status, opts); err != nil || got.Status.ObservedGeneration != 7 {
		t.Errorf("status: %v, %v", got, err)
	}
}

func TestWhatApplyRefuses(t *testing.T) {
	ctx, cl := connect(t)
	maps := client.For[*corev1.ConfigMap](cl)
	plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	read, err := maps.Create(ctx, plain, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for want, call := range map[string]func() error{
		"FieldManager is empty": func() error { _, err := maps.Apply(ctx, plain, metav1.ApplyOptions{}); return err },
		"is not the endpoint's": func() error {
			_, err := maps.Namespace("other").Apply(ctx, plain, metav1.ApplyOptions{FieldManager: "me"})
			return err
		},
		"managedFields": func() error { _, err := maps.Apply(ctx, read, metav1.ApplyOptions{FieldManager: "me"}); return err },
		"cannot be applied": func() error {
			_, err := maps.Apply(ctx, "kind: ConfigMap", metav1.ApplyOptions{FieldManager: "me"})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestMergePatchSendsTheDifference(t *testing.T) {
	ctx, cl := connect(t)
	maps := client.For[*corev1.ConfigMap](cl)
	old, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"},
		Data: map[string]string{"keep": "1", "drop": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if same, err := maps.MergePatch(ctx, old, old.DeepCopy(), client.MergePatchOptions{}); err != nil || same.ResourceVersion != old.ResourceVersion {
		t.Errorf("without a difference: %v, %v", same, err)
	}
	// Another client adds an entry meanwhile, which a merge patch leaves alone.
	if _, err := maps.Namespace("default").UpdateWithRetry(ctx, "a", func(cm *corev1.ConfigMap) error { cm.Data["other"] = "1"; return nil }); err != nil {
		t.Fatal(err)
	}
	changed := old.DeepCopy()
	delete(changed.Data, "drop")
	changed.Data["keep"] = "2"
	if _, err := maps.MergePatch(ctx, old, changed, client.MergePatchOptions{OptimisticLock: true}); !apierrors.IsConflict(err) {
		t.Errorf("with the old resourceVersion: %v", err)
	}
	patched, err := maps.MergePatch(ctx, old, changed, client.MergePatchOptions{FieldManager: "me"})
	if err != nil || len(patched.Data) != 2 || patched.Data["keep"] != "2" || patched.Data["other"] != "1" {
		t.Errorf("got %v, %v", patched, err)
	}
}

func TestMergePatchStatus(t *testing.T) {
	ctx, cl := connect(t)
	deployments := client.For[*appsv1.Deployment](cl)
	old, err := deployments.Create(ctx, web("one"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := old.DeepCopy()
	changed.Status.ObservedGeneration = 3
	changed.Labels = map[string]string{"ignored": ""}
	patched, err := deployments.MergePatchStatus(ctx, old, changed, client.MergePatchOptions{})
	if err != nil || patched.Status.ObservedGeneration != 3 || patched.Labels != nil {
		t.Errorf("got %v, %v", patched, err)
	}
}

func TestUpdateWithRetryLosesNoWrite(t *testing.T) {
	ctx, cl := connect(t)
	maps := client.For[*corev1.ConfigMap](cl).Namespace("default")
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "count"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const writers = 4
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			_, err := maps.UpdateWithRetry(ctx, "count", func(cm *corev1.ConfigMap) error {
				if cm.Data == nil {
					cm.Data = map[string]string{}
				}
				cm.Data["n"] += "x"
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := maps.Get(ctx, "count", metav1.GetOptions{}); err != nil || len(got.Data["n"]) != writers {
		t.Errorf("got %v, %v", got.Data, err)
	}
}

func TestCreateOrUpdate(t *testing.T) {
	ctx, cl := connect(t)
	maps := client.For[*corev1.ConfigMap](cl)
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	ensure := func(value string) (string, client.OperationResult) {
		t.Helper()
		cm, result, err := maps.CreateOrUpdate(ctx, wanted, func(cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{"k": value}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return cm.Data["k"], result
	}
	for _, step := range []struct {
		value string
		want  client.OperationResult
	}{{"1", client.OperationResultCreated}, {"1", client.OperationResultNone}, {"2", client.OperationResultUpdated}} {
		if value, result := ensure(step.value); value != step.value || result != step.want {
			t.Errorf("%s: got %s, %s", step.value, value, result)
		}
	}
	if wanted.Data != nil || wanted.UID != "" {
		t.Error("the argument was changed")
	}
	if _, _, err := maps.CreateOrUpdate(ctx, wanted, nil); err == nil {
		t.Error("without mutate")
	}
	wanted.Namespace = "missing"
	if _, _, err := maps.CreateOrUpdate(ctx, wanted, func(*corev1.ConfigMap) error { return nil }); !apierrors.IsNotFound(err) {
		t.Errorf("in a namespace that does not exist: %v", err)
	}
}

func TestCreateOrUpdateInManyPlaces(t *testing.T) {
	ctx, cl := connect(t)
	maps := client.For[*corev1.ConfigMap](cl).Namespace("default")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, _, err := maps.CreateOrUpdate(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, func(cm *corev1.ConfigMap) error {
				if cm.Data == nil {
					cm.Data = map[string]string{}
				}
				cm.Data["n"] += "x"
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := maps.Get(ctx, "a", metav1.GetOptions{}); err != nil || got.Data["n"] != "xxxx" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCreateOrPatch(t *testing.T) {
	ctx, cl := connect(t)
	deployments := client.For[*appsv1.Deployment](cl)
	for n, step := range []struct {
		replicas int32
		observed int64
		want     client.OperationResult
	}{
		{1, 0, client.OperationResultCreated},
		{1, 0, client.OperationResultNone},
		{2, 0, client.OperationResultUpdated},
		{2, 5, client.OperationResultUpdatedStatusOnly},
		{3, 6, client.OperationResultUpdatedStatus},
	} {
		got, result, err := deployments.CreateOrPatch(ctx, web("one"), func(d *appsv1.Deployment) error {
			d.Spec.Replicas, d.Status.ObservedGeneration = &step.replicas, step.observed
			return nil
		})
		if err != nil || result != step.want || *got.Spec.Replicas != step.replicas || got.Status.ObservedGeneration != step.observed {
			t.Errorf("step %d: %s, %v, %v", n, result, got, err)
		}
	}
}

func TestDryRunAndFieldManagerOfAnEndpoint(t *testing.T) {
	ctx, cl := connect(t)
	maps := client.For[*corev1.ConfigMap](cl).Namespace("default")
	mine := maps.FieldManager("me")
	color := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"color": value}}
	}
	if _, err := mine.DryRun().Create(ctx, color("red"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run was stored: %v", err)
	}
	created, err := mine.Create(ctx, color("red"), metav1.CreateOptions{})
	if err != nil || created.ManagedFields[0].Manager != "me" {
		t.Fatalf("got %+v, %v", created, err)
	}
	applied, err := mine.Apply(ctx, color("red"), metav1.ApplyOptions{})
	if err != nil || applied.ManagedFields[0].Manager != "me" {
		t.Errorf("got %+v, %v", applied, err)
	}
	if updated, err := mine.DryRun().UpdateWithRetry(ctx, "a", func(cm *corev1.ConfigMap) error { cm.Data["color"] = "blue"; return nil }); err != nil || updated.Data["color"] != "blue" {
		t.Errorf("got %+v, %v", updated, err)
	}
	if err := maps.DryRun().Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := maps.DryRun().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if got, err := maps.Get(ctx, "a", metav1.GetOptions{}); err != nil || got.Data["color"] != "red" || got.DeletionTimestamp != nil {
		t.Errorf("dry runs were stored: %+v, %v", got, err)
	}
}

// Without a field manager, the server takes the command's name for it, as it does for
// kubectl and client-go. That of the client's options is the default of all writes.
func TestFieldManagerOfAClient(t *testing.T) {
	server := levelwiretest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := filepath.Base(os.Args[0])
	for _, c := range []struct {
		opts client.Options
		call metav1.CreateOptions
		want string
	}{
		{client.Options{}, metav1.CreateOptions{}, command},
		{client.Options{UserAgent: "agent/1.0 (linux)"}, metav1.CreateOptions{}, "agent"},
		{client.Options{FieldManager: "painter"}, metav1.CreateOptions{}, "painter"},
		{client.Options{FieldManager: "painter"}, metav1.CreateOptions{FieldManager: "me"}, "me"},
	} {
		maps := client.For[*corev1.ConfigMap](server.Client(c.opts)).Namespace("default")
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}, Data: map[string]string{"a": "b"}}, c.call)
		if err != nil {
			t.Fatal(err)
		}
		if managers := made.ManagedFields; len(managers) != 1 || managers[0].Manager != c.want {
			t.Errorf("%+v: %+v, want %s", c, managers, c.want)
		}
	}
	maps := client.For[*corev1.ConfigMap](server.Client(client.Options{FieldManager: "painter"})).Namespace("default")
	applied, err := maps.Apply(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "applied"}, Data: map[string]string{"a": "b"}}, metav1.ApplyOptions{})
	if err != nil || len(applied.ManagedFields) != 1 || applied.ManagedFields[0].Manager != "painter" {
		t.Errorf("applied: %+v, %v", applied, err)
	}
}
