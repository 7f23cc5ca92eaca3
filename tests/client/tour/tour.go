package tour

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cached"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/objectmeta"
	"github.com/levelwire/levelwire/client/patch"
)

// finalizer is what the tour's objects are held by.
const finalizer = "tour.example.com/hold"

// tour is one way through the library.
type tour struct {
	*testing.T
	ctx    context.Context //nolint:containedctx // the test's
	client *client.Client
	api    client.Resource[*corev1.ConfigMap]
}

// Run goes through the library in a namespace that the server has already. The server
// must serve ConfigMaps and Namespaces.
func Run(t *testing.T, config *rest.Config, contentType client.ContentType, namespace string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := client.New(config, client.Options{ContentType: contentType})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	way := tour{t, ctx, c, client.For[*corev1.ConfigMap](c).Namespace(namespace)}
	for _, stop := range []struct {
		name string
		run  func(tour)
	}{
		{"write", tour.write}, {"pages", tour.pages}, {"forms", tour.forms}, {"patch", tour.patch}, {"apply", tour.apply},
		{"finalizer", tour.finalizer}, {"watch", tour.watch}, {"cached", tour.cached}, {"controller", tour.controller},
		{"refused", tour.refused},
	} {
		t.Run(stop.name, func(t *testing.T) {
			here := way
			here.T = t
			stop.run(here)
		})
	}
}

func (t tour) check(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (t tour) create(name string, labels map[string]string) *corev1.ConfigMap {
	t.Helper()
	made, err := t.api.Create(t.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"text": name},
	}, metav1.CreateOptions{})
	t.check(err)
	return made
}

func (t tour) write() {
	made := t.create("write", nil)
	stale := made.DeepCopy()
	made.Data["text"] = "two"
	_, err := t.api.Update(t.ctx, made, metav1.UpdateOptions{})
	t.check(err)
	stale.Data["text"] = "three"
	if _, err := t.api.Update(t.ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old state: %v, want a conflict", err)
	}
	set := func(text string) func(*corev1.ConfigMap) error {
		return func(obj *corev1.ConfigMap) error {
			if obj.Data == nil {
				obj.Data = map[string]string{}
			}
			obj.Data["text"] = text
			return nil
		}
	}
	updated, err := t.api.UpdateWithRetry(t.ctx, "write", set("four"))
	if t.check(err); updated.Data["text"] != "four" {
		t.Errorf("updated to %v", updated.Data)
	}
	for _, want := range []client.OperationResult{client.OperationResultCreated, client.OperationResultNone} {
		_, did, err := t.api.CreateOrUpdate(t.ctx, named("upsert"), set("one"))
		if t.check(err); did != want {
			t.Errorf("create or update has %s, want %s", did, want)
		}
	}
	_, did, err := t.api.CreateOrPatch(t.ctx, named("upsert"), set("two"))
	if t.check(err); did != client.OperationResultUpdated {
		t.Errorf("create or patch has %s", did)
	}
}

func named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (t tour) pages() {
	labels := map[string]string{"stop": "pages"}
	want := []string{"page-0", "page-1", "page-2", "page-3", "page-4"}
	for _, name := range want {
		t.create(name, labels)
	}
	var got []string
	for obj, err := range t.api.All(t.ctx, metav1.ListOptions{Limit: 2, LabelSelector: "stop=pages"}) {
		t.check(err)
		got = append(got, obj.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("in pages: %v, want %v", got, want)
	}
}

func (t tour) forms() {
	gvr := t.api.GroupVersionResource()
	made := t.create("forms", nil)
	dynamic, err := client.Dynamic(t.client, gvr).Namespace(made.Namespace).Get(t.ctx, made.Name, metav1.GetOptions{})
	if t.check(err); dynamic.GetKind() != "ConfigMap" || dynamic.GetUID() != made.UID {
		t.Errorf("dynamic: %v", dynamic)
	}
	metadata, err := client.Metadata(t.client, gvr).Namespace(made.Namespace).Get(t.ctx, made.Name, metav1.GetOptions{})
	if t.check(err); metadata.UID != made.UID {
		t.Errorf("metadata: %v", metadata)
	}
	served, err := t.api.Served(t.ctx)
	if t.check(err); !served {
		t.Error("configmaps are not served, says discovery")
	}
}

func (t tour) patch() {
	old := t.create("patch", nil)
	changed := old.DeepCopy()
	changed.Data["text"], changed.Data["more"] = "merged", "yes"
	merged, err := t.api.MergePatch(t.ctx, old, changed, client.MergePatchOptions{})
	if t.check(err); merged.Data["text"] != "merged" || merged.Data["more"] != "yes" {
		t.Errorf("merged: %v", merged.Data)
	}
	p, err := patch.JSON(patch.Test(patch.Pointer("data", "text"), "merged"), patch.Remove(patch.Pointer("data", "more")))
	t.check(err)
	patched, err := t.api.Patch(t.ctx, old.Name, p.Type, p.Data, metav1.PatchOptions{})
	if t.check(err); len(patched.Data) != 1 {
		t.Errorf("patched: %v", patched.Data)
	}
}

func (t tour) apply() {
	wanted := func(text string) *corev1.ConfigMap {
		obj := named("apply")
		obj.Data = map[string]string{"text": text}
		return obj
	}
	_, err := t.api.Apply(t.ctx, wanted("ours"), metav1.ApplyOptions{FieldManager: "ours"})
	t.check(err)
	_, err = t.api.Apply(t.ctx, wanted("theirs"), metav1.ApplyOptions{FieldManager: "theirs"})
	conflict := (*client.ApplyConflictError)(nil)
	if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Manager != "ours" {
		t.Errorf("a second manager: %v, want a conflict that names the first", err)
	}
	forced, err := t.api.Apply(t.ctx, wanted("theirs"), metav1.ApplyOptions{FieldManager: "theirs", Force: true})
	if t.check(err); forced.Data["text"] != "theirs" {
		t.Errorf("forced: %v", forced.Data)
	}
}

func (t tour) finalizer() {
	obj := t.create("finalizer", nil)
	change := func(f func(obj *corev1.ConfigMap)) {
		t.Helper()
		_, err := t.api.UpdateWithRetry(t.ctx, obj.Name, func(obj *corev1.ConfigMap) error {
			f(obj)
			return nil
		})
		t.check(err)
	}
	change(func(obj *corev1.ConfigMap) { objectmeta.AddFinalizer(obj, finalizer) })
	t.check(t.api.Delete(t.ctx, obj.Name, metav1.DeleteOptions{}))
	held, err := t.api.Get(t.ctx, obj.Name, metav1.GetOptions{})
	if t.check(err); !objectmeta.IsBeingDeleted(held) {
		t.Error("the object is not being deleted")
	}
	change(func(obj *corev1.ConfigMap) { objectmeta.RemoveFinalizer(obj, finalizer) })
	if _, err := t.api.Get(t.ctx, obj.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without its finalizer: %v, want not found", err)
	}
}

func (t tour) watch() {
	list, err := t.api.List(t.ctx, metav1.ListOptions{})
	t.check(err)
	w, err := t.api.Watch(t.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "stop=watch"})
	t.check(err)
	defer w.Close()
	obj := t.create("watch", map[string]string{"stop": "watch"})
	t.check(t.api.Delete(t.ctx, obj.Name, metav1.DeleteOptions{}))
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		event, err := w.Next()
		if t.check(err); event.Type != want || event.Object.UID != obj.UID {
			t.Errorf("event %s of %s, want %s of %s", event.Type, event.Object.Name, want, obj.Name)
		}
	}
}

func (t tour) cached() {
	ctx, stop := context.WithCancel(t.ctx)
	factory := informer.NewFactory(t.client, informer.Options{})
	defer factory.Shutdown()
	defer stop()
	reader := cached.NewReader(factory, cached.Options{})
	inf := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: t.namespace()})
	t.check(inf.AddIndexers(cached.LabelIndexers[*corev1.ConfigMap]("stop")))
	t.check(cached.Add(reader, inf))
	factory.Start(ctx)
	t.check(factory.WaitForSync(ctx))
	api := cached.For[*corev1.ConfigMap](reader).Namespace(t.namespace())
	for _, name := range []string{"cached-0", "cached-1", "cached-2"} {
		api.Record(t.create(name, map[string]string{"stop": "cached"})) // read your own writes
		if _, err := api.Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s, which was written before: %v", name, err)
		}
	}
	list, err := api.List(ctx, metav1.ListOptions{LabelSelector: "stop=cached"})
	if t.check(err); len(list.Items) != 3 {
		t.Errorf("%d objects by label, want 3", len(list.Items))
	}
}

func (t tour) namespace() string {
	obj, err := t.api.Get(t.ctx, "write", metav1.GetOptions{})
	t.check(err)
	return obj.Namespace
}

// controller has a controller answer objects, until the answers are there.
func (t tour) controller() {
	ctx, stop := context.WithCancel(t.ctx)
	factory := informer.NewFactory(t.client, informer.Options{})
	inf := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: t.namespace(), LabelSelector: "stop=controller"})
	answered := make(chan string, 10)
	c, err := controller.New(func(ctx context.Context, key controller.Key) (controller.Result, error) {
		obj, ok := inf.Lister().Get(key.Namespace, key.Name)
		if !ok || obj.Annotations["answer"] != "" {
			return controller.Result{}, nil
		}
		changed := obj.DeepCopy()
		changed.Annotations = map[string]string{"answer": obj.Data["text"]}
		_, err := t.api.MergePatch(ctx, obj, changed, client.MergePatchOptions{})
		if err == nil {
			answered <- key.Name
		}
		return controller.Result{}, err
	}, controller.Options{Name: "tour"})
	t.check(err)
	controller.For(c, inf)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, controller.RunOptions{Factory: factory}, c) }()
	t.create("controller", map[string]string{"stop": "controller"})
	select {
	case <-answered:
	case <-ctx.Done():
		t.Error("the controller has not answered")
	}
	stop()
	t.check(<-ended)
}

func (t tour) refused() {
	if _, err := client.For[*corev1.ConfigMap](t.client).Get(t.ctx, "x", metav1.GetOptions{}); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("without a namespace: %v, want an error that says so", err)
	}
	if _, err := t.api.Get(t.ctx, "does-not-exist", metav1.GetOptions{}); !apierrors.IsNotFound(err) || !client.IsStatus(err) {
		t.Errorf("not there: %v, want a Status", err)
	}
}
