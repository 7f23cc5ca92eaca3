package statefulset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/components/controllermanager/internal/revisionhistory"
)

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	set, ok := c.sets.Lister().Get(key.Namespace, key.Name)
	if !ok {
		c.selectors.Forget(key)
		c.control.Expectations.Forget(key)
		return controller.Result{}, nil
	}
	selector, err := c.selectors.Of(set, set.Spec.Selector)
	if err != nil || selector.Empty() {
		return controller.Result{}, nil // validation refuses such sets; one that slipped through owns nothing
	}
	settled, recheck := c.control.Settled(ctx, key)
	owned, err := c.control.Claim(ctx, set, selector, members{c.pods, set}, ownership.StillThere(c.api, set))
	if err != nil || set.DeletionTimestamp != nil {
		return controller.Result{}, err
	}
	update, all, err := c.revisions.Ensure(ctx, set, kind, &set.Spec.Template)
	if err != nil {
		return controller.Result{}, err
	}
	now := c.now()
	failed := c.ownClaims(ctx, set, owned)
	if settled && failed == nil {
		todo := next(set, owned, update.Name, now)
		if !todo.empty() {
			failed = controller.Consistent(ctx, set)
		}
		if failed == nil {
			failed = c.carryOut(ctx, set, todo, update, all)
		}
	}
	again, err := c.writeStatus(ctx, set, owned, update.Name, now)
	if err == nil && failed == nil {
		failed = c.trim(ctx, set, owned, all)
	}
	return controller.After(controller.Sooner(again, recheck)), errors.Join(failed, err)
}

func (c *Controller) trim(ctx context.Context, set *appsv1.StatefulSet, owned []*corev1.Pod, all []*appsv1.ControllerRevision) error {
	limit := 10
	if set.Spec.RevisionHistoryLimit != nil {
		limit = int(*set.Spec.RevisionHistoryLimit)
	}
	inUse := map[string]bool{set.Status.CurrentRevision: true, set.Status.UpdateRevision: true}
	for _, pod := range owned {
		inUse[pod.Labels[appsv1.StatefulSetRevisionLabel]] = true
	}
	return c.revisions.Trim(ctx, set, all, limit, inUse)
}

func (c *Controller) carryOut(ctx context.Context, set *appsv1.StatefulSet, p plan, update *appsv1.ControllerRevision, all []*appsv1.ControllerRevision) error {
	if err := c.control.Delete(ctx, set, p.delete); err != nil {
		return err
	}
	for _, ordinal := range p.create {
		revision := update
		for _, r := range all {
			if r.Name == revisionFor(set, ordinal, update.Name) {
				revision = r
			}
		}
		if err := c.createPod(ctx, set, ordinal, revision); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) createPod(ctx context.Context, set *appsv1.StatefulSet, ordinal int, revision *appsv1.ControllerRevision) error {
	template, err := revisionhistory.Template(revision)
	if err != nil {
		return err
	}
	if err := c.ensureClaims(ctx, set, ordinal); err != nil {
		return err
	}
	err = c.control.Create(ctx, set, template, 1, func(_ int, pod *corev1.Pod) { identify(set, pod, ordinal, revision.Name) })
	if apierrors.IsAlreadyExists(err) {
		return nil // the informer is late, or a namesake is in the way until it goes
	}
	return err
}

func podName(set *appsv1.StatefulSet, ordinal int) string {
	return fmt.Sprintf("%s-%d", set.Name, ordinal)
}

func claimName(template *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, ordinal int) string {
	return template.Name + "-" + podName(set, ordinal)
}

// identify gives a pod what stays with its number.
func identify(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int, revision string) {
	pod.GenerateName = ""
	pod.Name = podName(set, ordinal)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = fmt.Sprint(ordinal)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
	pod.Spec.Hostname = pod.Name
	pod.Spec.Subdomain = set.Spec.ServiceName
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		volume := corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(template, set, ordinal)},
		}}
		pod.Spec.Volumes = append(withoutVolume(pod.Spec.Volumes, template.Name), volume)
	}
}

// withoutVolume drops a volume of the template that a claim replaces.
func withoutVolume(volumes []corev1.Volume, name string) []corev1.Volume {
	kept := []corev1.Volume{}
	for i := range volumes {
		if volumes[i].Name != name {
			kept = append(kept, volumes[i])
		}
	}
	return kept
}

// ensureClaims creates the claims of a pod that do not exist. They outlive it.
// Those that are to go with the set belong to it from the beginning: the set may
// have been deleted already without this controller knowing, and it would
// not look at them again.
func (c *Controller) ensureClaims(ctx context.Context, set *appsv1.StatefulSet, ordinal int) error {
	for i := range set.Spec.VolumeClaimTemplates {
		claim := set.Spec.VolumeClaimTemplates[i].DeepCopy()
		claim.Name = claimName(claim, set, ordinal)
		claim.Namespace = set.Namespace
		if claim.Labels == nil {
			claim.Labels = map[string]string{}
		}
		for key, value := range set.Spec.Selector.MatchLabels {
			claim.Labels[key] = value
		}
		if retentionOf(set).withSet {
			claim.OwnerReferences = append(claim.OwnerReferences, *metav1.NewControllerRef(set, kind))
		}
		_, err := c.claimAPI.Namespace(set.Namespace).Create(ctx, claim, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create claim %s: %w", claim.Name, err)
		}
	}
	return nil
}

func (c *Controller) writeStatus(ctx context.Context, set *appsv1.StatefulSet, owned []*corev1.Pod, update string, now time.Time) (time.Duration, error) {
	status, again := count(set, owned, update, now)
	if equality.Semantic.DeepEqual(status, set.Status) {
		return again, nil
	}
	written := set.DeepCopy()
	written.Status = status
	_, err := c.api.Namespace(set.Namespace).UpdateStatus(ctx, written, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("write status: %w", err)
	}
	return again, nil
}

// count makes the status of what is there. When all pods have the update's
// revision it becomes the current one.
func count(set *appsv1.StatefulSet, owned []*corev1.Pod, update string, now time.Time) (status appsv1.StatefulSetStatus, again time.Duration) {
	status = *set.Status.DeepCopy()
	status.ObservedGeneration = set.Generation
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas, status.CurrentReplicas, status.UpdatedReplicas = 0, 0, 0, 0, 0
	status.UpdateRevision = update
	if status.CurrentRevision == "" {
		status.CurrentRevision = update
	}
	if status.CollisionCount == nil { // another controller may have counted: it must not go back
		status.CollisionCount = new(int32)
	}
	for _, pod := range owned {
		status.Replicas++
		if pod.Status.Phase == corev1.PodRunning && pods.Ready(pod) {
			status.ReadyReplicas++
			available, in := pods.Available(pod, set.Spec.MinReadySeconds, now)
			if available {
				status.AvailableReplicas++
			}
			again = controller.Sooner(again, in)
		}
		if pod.DeletionTimestamp != nil {
			continue
		}
		switch pod.Labels[appsv1.StatefulSetRevisionLabel] {
		case update:
			status.UpdatedReplicas++
			if status.CurrentRevision == update {
				status.CurrentReplicas++
			}
		case status.CurrentRevision:
			status.CurrentReplicas++
		}
	}
	if status.UpdatedReplicas == status.Replicas && status.ReadyReplicas == status.Replicas && int(status.Replicas) == replicas(set) {
		status.CurrentRevision, status.CurrentReplicas = update, status.UpdatedReplicas
	}
	return status, again
}
