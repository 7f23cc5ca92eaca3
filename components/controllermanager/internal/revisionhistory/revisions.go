package revisionhistory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
)

// Revisions are the ControllerRevisions of all owners. They are safe for concurrent use.
type Revisions struct {
	api   client.Resource[*appsv1.ControllerRevision]
	index *ownership.Index[*appsv1.ControllerRevision]
}

// New indexes the factory's informer of revisions. Call it once for a factory,
// before it starts, and share the result.
func New(c *client.Client, factory *informer.Factory) (*Revisions, error) {
	index, err := ownership.NewIndex(informer.For[*appsv1.ControllerRevision](factory, informer.ListOptions{}))
	return &Revisions{client.For[*appsv1.ControllerRevision](c), index}, err
}

// As returns the same revisions, written by another client.
func (r *Revisions) As(c *client.Client) *Revisions {
	return &Revisions{client.For[*appsv1.ControllerRevision](c), r.index}
}

// Informer has the revisions. A controller requires it, so that it counts for controller.Consistent.
func (r *Revisions) Informer() *informer.SharedInformer[*appsv1.ControllerRevision] {
	return r.index.Informer
}

// Of returns an owner's revisions, oldest first.
func (r *Revisions) Of(owner metav1.Object) ([]*appsv1.ControllerRevision, error) {
	owned, err := r.index.Owned(owner.GetUID())
	slices.SortFunc(owned, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return owned, err
}

// Template reads a revision's template back.
func Template(revision *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var content struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(revision.Data.Raw, &content); err != nil {
		return nil, fmt.Errorf("revision %s: %w", revision.Name, err)
	}
	return &content.Spec.Template, nil
}

// encode makes the patch that sets the template. Its keys are sorted, so equal
// templates have equal bytes.
func encode(template *corev1.PodTemplateSpec) ([]byte, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encode the pod template: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("encode the pod template: %w", err)
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// Ensure returns the revision of the owner's present template, and all of
// them, oldest first. A template that comes back gets the highest number
// again; a new one is recorded. The name follows from the template, so that a
// revision the informer does not show yet is found and not made twice.
func (r *Revisions) Ensure(ctx context.Context, owner metav1.Object, kind schema.GroupVersionKind, template *corev1.PodTemplateSpec) (current *appsv1.ControllerRevision, all []*appsv1.ControllerRevision, err error) {
	all, err = r.Of(owner)
	if err != nil {
		return nil, nil, err
	}
	data, err := encode(template)
	if err != nil {
		return nil, nil, err
	}
	next := int64(1)
	for _, revision := range all {
		next = max(next, revision.Revision+1)
	}
	for i, revision := range all {
		same, err := holds(revision, data)
		if err != nil {
			return nil, nil, err
		}
		if !same {
			continue
		}
		if i == len(all)-1 {
			return revision, all, nil
		}
		moved, err := r.renumber(ctx, revision, next)
		if err != nil {
			return nil, nil, err
		}
		return moved, append(slices.Delete(slices.Clone(all), i, i+1), moved), nil
	}
	current, err = r.record(ctx, owner, kind, template, data, next)
	return current, append(all, current), err
}

// holds compares by meaning: a revision may have been written by another
// version of the API, with other fields in another order.
func holds(revision *appsv1.ControllerRevision, data []byte) (bool, error) {
	if bytes.Equal(revision.Data.Raw, data) {
		return true, nil
	}
	template, err := Template(revision)
	if err != nil {
		return false, err
	}
	again, err := encode(template)
	return bytes.Equal(again, data), err
}

func (r *Revisions) renumber(ctx context.Context, revision *appsv1.ControllerRevision, number int64) (*appsv1.ControllerRevision, error) {
	update := revision.DeepCopy()
	update.Revision = number
	written, err := r.api.Namespace(update.Namespace).Update(ctx, update, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("renumber revision %s: %w", revision.Name, err)
	}
	return written, nil
}

// collisionsMost is how many names are tried for one template.
const collisionsMost = 8

func (r *Revisions) record(ctx context.Context, owner metav1.Object, kind schema.GroupVersionKind, template *corev1.PodTemplateSpec, data []byte, number int64) (*appsv1.ControllerRevision, error) {
	for collision := range collisionsMost {
		hash := hashOf(data, collision)
		labels := maps.Clone(template.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[appsv1.ControllerRevisionHashLabelKey] = hash
		revision := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: owner.GetNamespace(), Name: owner.GetName() + "-" + hash, Labels: labels,
				Annotations:     changeCause(owner),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
			},
			Data: runtime.RawExtension{Raw: data}, Revision: number,
		}
		created, err := r.api.Namespace(revision.Namespace).Create(ctx, revision, metav1.CreateOptions{})
		if err == nil {
			return created, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("record revision: %w", err)
		}
		found, err := r.api.Namespace(revision.Namespace).Get(ctx, revision.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read revision %s: %w", revision.Name, err)
		}
		if same, err := holds(found, data); err == nil && same && metav1.IsControlledBy(found, owner) {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no free name for a revision of %s/%s: delete ControllerRevisions that have no owner", owner.GetNamespace(), owner.GetName())
}

// changeCause is what kubectl rollout history shows beside a revision.
func changeCause(owner metav1.Object) map[string]string {
	const annotation = "kubernetes.io/change-cause"
	if cause, ok := owner.GetAnnotations()[annotation]; ok {
		return map[string]string{annotation: cause}
	}
	return nil
}

func hashOf(data []byte, collision int) string {
	hash := fnv.New32a()
	_, _ = hash.Write(data) // never fails
	if collision > 0 {
		_, _ = fmt.Fprintf(hash, "/%d", collision)
	}
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
}

// Trim deletes the oldest revisions of an owner beyond limit that inUse does not name; the
// newest, the present one, always stays. It deletes none while an informer of the controller is
// behind: a pod that it does not show may use one.
func (r *Revisions) Trim(ctx context.Context, owner metav1.Object, all []*appsv1.ControllerRevision, limit int, inUse map[string]bool) error {
	if len(all) == 0 {
		return nil
	}
	past := slices.DeleteFunc(slices.Clone(all[:len(all)-1]), func(r *appsv1.ControllerRevision) bool { return inUse[r.Name] })
	if len(past) <= limit {
		return nil
	}
	if err := controller.Consistent(ctx, owner); err != nil {
		return err
	}
	for _, revision := range past[:len(past)-max(limit, 0)] {
		err := r.api.Namespace(revision.Namespace).Delete(ctx, revision.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &revision.UID},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete the old revision %s: %w", revision.Name, err)
		}
	}
	return nil
}
