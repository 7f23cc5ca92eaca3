package deployment

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
)

// refreshCurrent makes the set of the present template show the present
// revision, and creates it if it is missing and that is asked for.
func (r *rollout) refreshCurrent(ctx context.Context, create bool) error {
	revision := int64(1)
	for _, set := range r.old {
		revision = max(revision, revisionOf(set)+1)
	}
	if r.current == nil {
		if !create {
			return nil
		}
		return r.createCurrent(ctx, revision)
	}
	update := r.current.DeepCopy()
	update.Annotations = annotate(r.d, r.current, revision)
	update.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
	if !maps.Equal(update.Annotations, r.current.Annotations) || update.Spec.MinReadySeconds != r.current.Spec.MinReadySeconds {
		written, err := r.setAPI.Namespace(update.Namespace).Update(ctx, update, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("update %s: %w", update.Name, err)
		}
		r.replace(r.current, written)
	}
	if conditionOf(&r.d.Status, appsv1.DeploymentProgressing) == nil {
		r.made = progressing(corev1.ConditionTrue, foundNewSet, fmt.Sprintf("Found new replica set %q", r.current.Name))
	}
	return r.showRevision(ctx)
}

// createCurrent creates the set of the present template. Its name follows
// from the template, so that a set which the informer does not show yet is
// found rather than made twice.
func (r *rollout) createCurrent(ctx context.Context, revision int64) error {
	if err := controller.Consistent(ctx, r.seen); err != nil {
		return err
	}
	hash, err := hashOf(&r.d.Spec.Template, r.d.Status.CollisionCount)
	if err != nil {
		return err
	}
	set := r.newSet(hash, revision)
	size := newSetSize(r.d, r.lim, 0, totalSize(r.old))
	set.Spec.Replicas = &size
	noteScale(set, replicas(r.d), r.most())
	created, err := r.setAPI.Namespace(set.Namespace).Create(ctx, set, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.meetNamesake(ctx, set)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case err != nil:
		r.made = progressing(corev1.ConditionFalse, setCreateError, fmt.Sprintf("Failed to create new replica set %q: %v", set.Name, err))
		if _, statusErr := r.writeStatus(ctx); statusErr != nil {
			return fmt.Errorf("create replica set: %w (and report it: %w)", err, statusErr)
		}
		return fmt.Errorf("create replica set: %w", err)
	}
	r.written.Record(created)
	r.current = created
	if size > 0 {
		r.reportScale(created.Name, 0, size)
	}
	r.made = progressing(corev1.ConditionTrue, newSetCreated, fmt.Sprintf("Created new replica set %q", created.Name))
	return r.showRevision(ctx)
}

func (r *rollout) newSet(hash string, revision int64) *appsv1.ReplicaSet {
	template := r.d.Spec.Template.DeepCopy()
	template.Labels = withLabel(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := r.d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withLabel(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.d.Namespace, Name: r.d.Name + "-" + hash,
			Labels:          maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r.d, kind)},
		},
		Spec: appsv1.ReplicaSetSpec{MinReadySeconds: r.d.Spec.MinReadySeconds, Selector: selector, Template: *template},
	}
	set.Annotations = annotate(r.d, set, revision)
	return set
}

// meetNamesake deals with a set that has the name already: it is ours and
// the informer is late, or the hashes of two templates are equal.
func (r *rollout) meetNamesake(ctx context.Context, set *appsv1.ReplicaSet) error {
	found, err := r.setAPI.Namespace(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read replica set %s: %w", set.Name, err)
	}
	if metav1.IsControlledBy(found, r.d) && sameTemplate(&found.Spec.Template, &r.d.Spec.Template) {
		r.written.Record(found)
		r.current = found
		return r.showRevision(ctx)
	}
	if alive, err := ownership.StillThere(r.api, r.d)(ctx); !alive || err != nil {
		return err
	}
	update := r.d.DeepCopy()
	collisions := int32(1)
	if r.d.Status.CollisionCount != nil {
		collisions = *r.d.Status.CollisionCount + 1
	}
	update.Status.CollisionCount = &collisions
	written, err := r.api.Namespace(update.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("note that the name %s is taken: %w", set.Name, err)
	}
	r.written.Record(written)
	r.d = written
	return nil // the status comes back with the watch, and the next name is tried
}

// showRevision copies the current set's revision to the deployment.
func (r *rollout) showRevision(ctx context.Context) error {
	revision := revisionOf(r.current)
	if revisionOf(r.d) == revision {
		return nil
	}
	update := r.d.DeepCopy()
	if update.Annotations == nil {
		update.Annotations = map[string]string{}
	}
	update.Annotations[revisionAnnotation] = strconv.FormatInt(revision, 10)
	written, err := r.api.Namespace(update.Namespace).Update(ctx, update, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write the revision: %w", err)
	}
	r.written.Record(written)
	r.d = written
	return nil
}
