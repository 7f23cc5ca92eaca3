package storageprotection

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

const (
	workers         = 4
	volumeFinalizer = "kubernetes.io/pv-protection"
)

// Volumes is the controller of PersistentVolumes.
type Volumes struct {
	loop    *controller.Controller
	volumes *informer.SharedInformer[*corev1.PersistentVolume]
	api     client.Resource[*corev1.PersistentVolume]
}

// NewVolumes registers the controller with the factory's informers.
func NewVolumes(cl *client.Client, factory *informer.Factory, log *slog.Logger) (*Volumes, error) {
	c := &Volumes{
		volumes: informer.For[*corev1.PersistentVolume](factory, informer.ListOptions{}),
		api:     client.For[*corev1.PersistentVolume](cl),
	}
	var err error
	c.loop, err = controller.New(c.reconcile, controller.Options{Name: "pvprotection", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.For(c.loop, c.volumes, concerns[*corev1.PersistentVolume](volumeFinalizer))
	return c, nil
}

// Run runs the controller until ctx ends.
func (c *Volumes) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func (c *Volumes) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	volume, ok := c.volumes.Lister().Get("", key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	update := volume.DeepCopy()
	if !protect(update, volumeFinalizer, volume.Status.Phase == corev1.VolumeBound) {
		return controller.Result{}, nil
	}
	_, err := c.api.Update(ctx, update, metav1.UpdateOptions{})
	return controller.Result{}, ignoreOvertaken(err, "volume "+volume.Name)
}

// concerns is the predicate of the changes after which a finalizer may be missing, or
// may have to be taken away.
func concerns[T client.Object](finalizer string) controller.Predicate[T] {
	return func(change controller.Change[T]) bool {
		if change.Kind == controller.Deleted {
			return false
		}
		deleting := change.Object.GetDeletionTimestamp() != nil
		return deleting == slices.Contains(change.Object.GetFinalizers(), finalizer)
	}
}

// protect changes the finalizers to those that the object must have, and reports whether
// that is another list. An object that is older than the admission plugin, or was created
// without it, gets the finalizer here. One that is being deleted never gets it.
func protect(obj client.Object, finalizer string, used bool) (changed bool) {
	has, deleting := slices.Contains(obj.GetFinalizers(), finalizer), obj.GetDeletionTimestamp() != nil
	switch {
	case !deleting && !has:
		obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), finalizer))
	case deleting && has && !used:
		obj.SetFinalizers(slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer }))
	default:
		return false
	}
	return true
}

// ignoreOvertaken returns nil if the object has gone or has changed since it was read: its
// newer state is on its way to the informer, and brings the controller back.
func ignoreOvertaken(err error, what string) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("write finalizers of %s: %w", what, err)
}
