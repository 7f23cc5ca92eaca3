package controllerruntime

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/tests/peers/program"
)

const (
	testTimeout = 3 * time.Minute
	finalizer   = "bakery.example.com/cold"
	namespace   = "default"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// startEnvironment starts what envtest starts, from the stand-ins, and returns
// how to reach it and how long it took from Start to the first answer.
func startEnvironment(t *testing.T, definitions ...*apiextensionsv1.CustomResourceDefinition) (*rest.Config, time.Duration) {
	t.Helper()
	environment, took := newEnvironment(t, definitions...)
	return environment.Config, took
}

// newEnvironment is startEnvironment that returns the environment.
func newEnvironment(t *testing.T, definitions ...*apiextensionsv1.CustomResourceDefinition) (*envtest.Environment, time.Duration) {
	t.Helper()
	assets := filepath.Join(t.TempDir(), "assets")
	if out, err := exec.Command(program.Build(t), "envtest-assets", assets).CombinedOutput(); err != nil {
		t.Fatalf("levelwire envtest-assets: %v\n%s", err, out)
	}
	environment := &envtest.Environment{BinaryAssetsDirectory: assets, CRDs: definitions}
	begin := time.Now()
	if _, err := environment.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	relay(t, environment)
	c, err := client.New(environment.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.NamespaceList{}); err != nil {
		t.Fatal(err)
	}
	return environment, time.Since(begin)
}

// TestManager runs a manager with all that one has: leader election, caches of
// all three kinds, an index, a finalizer, status and server-side apply.
func TestManager(t *testing.T) {
	config, took := startEnvironment(t, ovenDefinition())
	t.Logf("envtest's Start to the first answered request: %v", took.Round(time.Millisecond))
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	addOvens(types)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: types, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "bakery", LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	baker := &baker{Client: manager.GetClient()}
	if err := baker.register(manager); err != nil {
		t.Fatal(err)
	}
	run(t, manager)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()

	outside, err := client.New(config, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	lead := &coordinationv1.Lease{}
	await(ctx, t, func() error {
		err := outside.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "bakery"}, lead)
		if err == nil && (lead.Spec.HolderIdentity == nil || *lead.Spec.HolderIdentity == "") {
			err = fmt.Errorf("the lease has no holder")
		}
		return err
	})
	baker.live(ctx, t, outside)
}

// run runs the manager until the test ends.
func run(t *testing.T, manager ctrl.Manager) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

// baker is a reconciler: each Oven gets a ConfigMap, applied on the server's
// side, and a status; one that is deleted is let go when the ConfigMap is gone.
type baker struct{ client.Client }

func (b *baker) register(manager ctrl.Manager) error {
	byTrays := func(obj client.Object) []string { return []string{fmt.Sprint(obj.(*Oven).Spec.Trays)} }
	if err := manager.GetFieldIndexer().IndexField(context.Background(), &Oven{}, "spec.trays", byTrays); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).For(&Oven{}).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Complete(b)
}

func (b *baker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	oven := &Oven{}
	if err := b.Get(ctx, request.NamespacedName, oven); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !oven.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, b.letGo(ctx, oven)
	}
	if controllerutil.AddFinalizer(oven, finalizer) {
		return ctrl.Result{}, b.Update(ctx, oven)
	}
	owner := metav1ac.OwnerReference().WithAPIVersion(groupVersion.String()).WithKind("Oven").
		WithName(oven.Name).WithUID(oven.UID).WithController(true)
	menu := corev1ac.ConfigMap(oven.Name, oven.Namespace).WithOwnerReferences(owner).
		WithData(map[string]string{"trays": fmt.Sprint(oven.Spec.Trays)})
	if err := b.Apply(ctx, menu, client.FieldOwner("baker"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	before := oven.DeepCopyObject().(*Oven)
	oven.Status.Ready = oven.Generation
	return ctrl.Result{}, b.Status().Patch(ctx, oven, client.MergeFrom(before))
}

// letGo deletes what belongs to an Oven, and then its finalizer.
func (b *baker) letGo(ctx context.Context, oven *Oven) error {
	menu := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: oven.Namespace, Name: oven.Name}}
	if err := client.IgnoreNotFound(b.Delete(ctx, menu)); err != nil {
		return err
	}
	before := oven.DeepCopyObject().(*Oven)
	controllerutil.RemoveFinalizer(oven, finalizer)
	return client.IgnoreNotFound(b.Patch(ctx, oven, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// live is an Oven's life, seen from outside and through the manager's caches.
func (b *baker) live(ctx context.Context, t *testing.T, outside client.Client) {
	t.Helper()
	oven := &Oven{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "big"}, Spec: OvenSpec{Trays: 4}}
	if err := outside.Create(ctx, oven); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(oven)
	b.awaitMenu(ctx, t, outside, key, "4", 1)
	b.throughCaches(ctx, t, key)

	// The controller restores what another client deletes or takes over.
	if err := outside.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "big"}}); err != nil {
		t.Fatal(err)
	}
	b.awaitMenu(ctx, t, outside, key, "4", 1)
	if err := outside.Get(ctx, key, oven); err != nil {
		t.Fatal(err)
	}
	changed := oven.DeepCopyObject().(*Oven)
	changed.Spec.Trays, changed.Status.Ready = 5, 99
	if err := outside.Patch(ctx, changed, client.MergeFrom(oven)); err != nil {
		t.Fatal(err)
	}
	b.awaitMenu(ctx, t, outside, key, "5", 2)
	if err := outside.Update(ctx, oven); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v, want a conflict", err)
	}

	if err := outside.Delete(ctx, oven); err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{&Oven{}, &corev1.ConfigMap{}} {
		await(ctx, t, func() error {
			if err := outside.Get(ctx, key, obj); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T of a deleted Oven: %v", obj, err)
			}
			return nil
		})
	}
}

// awaitMenu waits for the ConfigMap and for the status of a generation.
func (b *baker) awaitMenu(ctx context.Context, t *testing.T, outside client.Client, key client.ObjectKey, trays string, generation int64) {
	t.Helper()
	await(ctx, t, func() error {
		menu, oven := &corev1.ConfigMap{}, &Oven{}
		if err := outside.Get(ctx, key, menu); err != nil {
			return err
		}
		if err := outside.Get(ctx, key, oven); err != nil {
			return err
		}
		if menu.Data["trays"] != trays || oven.Generation != generation || oven.Status.Ready != generation {
			return fmt.Errorf("the menu says %q trays, generation %d, ready %d; want %s, %d", menu.Data["trays"], oven.Generation, oven.Status.Ready, trays, generation)
		}
		return nil
	})
}

// throughCaches reads the same through a typed, an unstructured and a metadata
// cache, and through an index.
func (b *baker) throughCaches(ctx context.Context, t *testing.T, key client.ObjectKey) {
	t.Helper()
	ovenKind := groupVersion.WithKind("Oven")
	loose, meta := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	loose.SetGroupVersionKind(ovenKind)
	meta.SetGroupVersionKind(ovenKind)
	for _, obj := range []client.Object{&Oven{}, loose, meta} {
		await(ctx, t, func() error { return b.Get(ctx, key, obj) })
		if !controllerutil.ContainsFinalizer(obj, finalizer) {
			t.Errorf("%T in the cache has the finalizers %q", obj, obj.GetFinalizers())
		}
	}
	found := &OvenList{}
	if err := b.List(ctx, found, client.MatchingFields{"spec.trays": "4"}); err != nil || len(found.Items) != 1 {
		t.Errorf("the index finds %d ovens, %v", len(found.Items), err)
	}
}

func await(ctx context.Context, t *testing.T, check func() error) {
	t.Helper()
	testwait.Stable(t, "the check passes", func() (any, bool) {
		err := check()
		if err != nil && ctx.Err() != nil {
			t.Fatalf("%v: %v", context.Cause(ctx), err)
		}
		return err, err == nil
	})
}
