package storageprotection

import (
	"context"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

const claimFinalizer = "kubernetes.io/pvc-protection"

// byClaim is the index of pods by the namespace and name of the claims in their volumes.
const byClaim = "claim"

// Claims is the controller of PersistentVolumeClaims.
type Claims struct {
	loop   *controller.Controller
	claims *informer.SharedInformer[*corev1.PersistentVolumeClaim]
	pods   *pods.Source
	api    client.Resource[*corev1.PersistentVolumeClaim]
}

// NewClaims registers the controller with the factory's informers.
func NewClaims(cl *client.Client, factory *informer.Factory, source *pods.Source, log *slog.Logger) (*Claims, error) {
	c := &Claims{
		claims: informer.For[*corev1.PersistentVolumeClaim](factory, informer.ListOptions{}),
		pods:   source,
		api:    client.For[*corev1.PersistentVolumeClaim](cl),
	}
	err := source.Informer.AddIndexers(cache.Indexers[*corev1.Pod]{byClaim: func(pod *corev1.Pod) ([]string, error) {
		var keys []string
		for i := range pod.Spec.Volumes {
			if name := claimOf(pod, &pod.Spec.Volumes[i]); name != "" {
				keys = append(keys, cache.ObjectKey(pod.Namespace, name))
			}
		}
		return keys, nil
	}})
	if err != nil {
		return nil, err
	}
	c.loop, err = controller.New(c.reconcile, controller.Options{Name: "pvcprotection", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.For(c.loop, c.claims, concerns[*corev1.PersistentVolumeClaim](claimFinalizer))
	controller.Handle(c.loop, source.Informer, informer.HandlerFuncs[*corev1.Pod]{
		Update: func(old, pod *corev1.Pod) {
			if old.UID != pod.UID {
				c.podLeft(old)
			}
			if isShutDown(pod) {
				c.podLeft(pod)
			}
		},
		Delete: func(pod *corev1.Pod, _ bool) { c.podLeft(pod) },
	})
	return c, nil
}

// Run runs the controller until ctx ends.
func (c *Claims) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// podLeft queues the claims that a pod uses no more, if they wait for that.
func (c *Claims) podLeft(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		name := claimOf(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		if claim, ok := c.claims.Lister().Get(pod.Namespace, name); ok && claim.DeletionTimestamp != nil {
			c.loop.Add(controller.KeyOf(claim))
		}
	}
}

func (c *Claims) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	claim, ok := c.claims.Lister().Get(key.Namespace, key.Name)
	if !ok {
		return controller.Result{}, nil
	}
	update := claim.DeepCopy()
	if !protect(update, claimFinalizer, false) {
		return controller.Result{}, nil
	}
	if claim.DeletionTimestamp != nil {
		if used, err := c.isUsed(ctx, claim); err != nil || used {
			return controller.Result{}, err // the end of the pods that use it brings us back
		}
	}
	_, err := c.api.Namespace(claim.Namespace).Update(ctx, update, metav1.UpdateOptions{})
	return controller.Result{}, ignoreOvertaken(err, "claim "+claim.Namespace+"/"+claim.Name)
}

// isUsed reports whether a pod that is bound to a node uses the claim. A pod that was bound before the claim's deletion may
// be one of which the informer has not heard: that none uses it is only taken from an informer that has come to the deletion. No
// kubelet starts a pod that was bound after it.
func (c *Claims) isUsed(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	known, err := c.pods.Informer.Lister().ByIndex(byClaim, cache.ObjectKey(claim.Namespace, claim.Name))
	if err != nil || slices.ContainsFunc(known, func(pod *corev1.Pod) bool { return uses(pod, claim) }) {
		return true, err
	}
	return false, controller.Consistent(ctx, claim)
}

// uses reports whether the pod uses the claim. A pod without a node does not: no kubelet
// starts a pod whose claim is being deleted. Neither does one use its ephemeral volumes
// whose kubelet has finished: it may wait for the claim, as its dependent, to go.
func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if claimOf(pod, volume) != claim.Name {
			continue
		}
		if volume.Ephemeral == nil || !isShutDown(pod) && metav1.IsControlledBy(claim, pod) {
			return true
		}
	}
	return false
}

// isShutDown reports whether the pod's kubelet has finished with it, or will not be waited
// for.
func isShutDown(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}

// claimOf returns the name of the volume's claim; "" if it has none.
func claimOf(pod *corev1.Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	}
	return ""
}
