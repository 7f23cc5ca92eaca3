package storageprotection

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

const classFinalizer = "kubernetes.io/vac-protection"

// byClass is the index of claims and of volumes by the names of the VolumeAttributesClasses
// that they have, or are to have.
const byClass = "attributes-class"

// Classes is the controller of VolumeAttributesClasses.
type Classes struct {
	loop    *controller.Controller
	classes *informer.SharedInformer[*storagev1.VolumeAttributesClass]
	claims  *informer.SharedInformer[*corev1.PersistentVolumeClaim]
	volumes *informer.SharedInformer[*corev1.PersistentVolume]
	api     client.Resource[*storagev1.VolumeAttributesClass]
}

// NewClasses registers the controller with the factory's informers.
func NewClasses(cl *client.Client, factory *informer.Factory, log *slog.Logger) (*Classes, error) {
	c := &Classes{
		classes: informer.For[*storagev1.VolumeAttributesClass](factory, informer.ListOptions{}),
		claims:  informer.For[*corev1.PersistentVolumeClaim](factory, informer.ListOptions{}),
		volumes: informer.For[*corev1.PersistentVolume](factory, informer.ListOptions{}),
		api:     client.For[*storagev1.VolumeAttributesClass](cl),
	}
	err := c.claims.AddIndexers(cache.Indexers[*corev1.PersistentVolumeClaim]{byClass: func(claim *corev1.PersistentVolumeClaim) ([]string, error) {
		return classesOfClaim(claim), nil
	}})
	if err != nil {
		return nil, err
	}
	err = c.volumes.AddIndexers(cache.Indexers[*corev1.PersistentVolume]{byClass: func(volume *corev1.PersistentVolume) ([]string, error) {
		return classOfVolume(volume), nil
	}})
	if err != nil {
		return nil, err
	}
	c.loop, err = controller.New(c.reconcile, controller.Options{Name: "vacprotection", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.For(c.loop, c.classes, concerns[*storagev1.VolumeAttributesClass](classFinalizer))
	controller.Handle(c.loop, c.claims, releases(c, classesOfClaim))
	controller.Handle(c.loop, c.volumes, releases(c, classOfVolume))
	return c, nil
}

// releases queues the classes that an object has no more.
func releases[T client.Object](c *Classes, classesOf func(T) []string) informer.HandlerFuncs[T] {
	queue := func(obj T) {
		for _, name := range classesOf(obj) {
			c.loop.Add(controller.Key{Name: name})
		}
	}
	return informer.HandlerFuncs[T]{
		Update: func(old, _ T) { queue(old) },
		Delete: func(obj T, _ bool) { queue(obj) },
	}
}

// Run runs the controller until ctx ends.
func (c *Classes) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func (c *Classes) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	class, ok := c.classes.Lister().Get("", key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	used, err := c.isUsed(class.Name)
	if err != nil {
		return controller.Result{}, err
	}
	update := class.DeepCopy()
	if !protect(update, classFinalizer, used) {
		return controller.Result{}, nil
	}
	// That nothing uses the class may only be what these informers do not know yet.
	if err := controller.Consistent(ctx, class); err != nil {
		return controller.Result{}, err
	}
	written, err := c.api.Update(ctx, update, metav1.UpdateOptions{})
	if err == nil {
		controller.Wrote(ctx, written)
	}
	return controller.Result{}, ignoreOvertaken(err, "volume attributes class "+class.Name)
}

// isUsed reports whether a claim or a volume has the class, or is to have it.
func (c *Classes) isUsed(name string) (bool, error) {
	claims, err := c.claims.Lister().ByIndex(byClass, name)
	if err != nil || len(claims) > 0 {
		return true, err
	}
	volumes, err := c.volumes.Lister().ByIndex(byClass, name)
	return len(volumes) > 0, err
}

// classesOfClaim returns the classes that a claim asks for, has, and is being moved to.
func classesOfClaim(claim *corev1.PersistentVolumeClaim) (names []string) {
	for _, name := range []*string{claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName} {
		if name != nil && *name != "" {
			names = append(names, *name)
		}
	}
	if modify := claim.Status.ModifyVolumeStatus; modify != nil && modify.TargetVolumeAttributesClassName != "" {
		names = append(names, modify.TargetVolumeAttributesClassName)
	}
	return names
}

func classOfVolume(volume *corev1.PersistentVolume) []string {
	if name := volume.Spec.VolumeAttributesClassName; name != nil && *name != "" {
		return []string{*name}
	}
	return nil
}
