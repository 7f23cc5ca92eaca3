package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Delete deletes an object, or marks it as being deleted if finalizers or a
// grace period say that it must stay for a while: then the Result is not
// Deleted, and the write that takes away the last reason removes it. opts may
// be nil. A pod is always marked first and removed then, in two writes.
func (r Registry) Delete(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) (*Result, error) {
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	if errs := validation.ValidateDeleteOptions(opts); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	d := &deletion{Registry: r, namespace: namespace, name: name, opts: opts, dryRun: len(opts.DryRun) > 0}
	result, err := r.guarded(ctx, namespace, name, d.dryRun, func(cur *state) (decision, error) {
		return d.decide(ctx, cur)
	})
	if err == nil && d.thenRemove && !d.dryRun {
		result, err = d.removeMarked(ctx, result)
	}
	if err != nil {
		return nil, err
	}
	if d.thenRemove && d.dryRun {
		result.Deleted = true
	}
	if result.Deleted && !r.res.Strategy.ReturnDeleted {
		result.Status = r.deletedStatus(name, result.Object.GetUID())
	}
	return result, nil
}

// deletedStatus is the answer for kinds that do not answer with the object.
// Details.Kind is the resource's plural name, as in Kubernetes.
func (r Registry) deletedStatus(name string, uid types.UID) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: name, Group: r.res.Group, Kind: r.res.Plural, UID: uid},
	}
}

// deletion is one DELETE on its way.
type deletion struct {
	Registry
	namespace, name string
	opts            *metav1.DeleteOptions
	dryRun          bool
	// thenRemove: what was decided last is the mark of an object that has no
	// reason to stay.
	thenRemove bool
}

func (d *deletion) decide(ctx context.Context, cur *state) (decision, error) {
	d.thenRemove = false
	if cur.object == nil {
		return decision{}, d.notFound(d.name)
	}
	if err := d.checkPreconditions(d.name, d.opts.Preconditions, cur.object); err != nil {
		return decision{}, err
	}
	q := &Request{
		Operation: Delete, Resource: d.res, Namespace: d.namespace, Name: d.name, Old: cur.object, DryRun: d.dryRun,
	}
	if err := d.set.admit(ctx, q); err != nil {
		return decision{}, err
	}
	obj := cur.object.DeepCopyObject().(resource.Object)
	marked := d.mark(obj)
	if !marked.mustStay {
		q.finish(ctx, Refused)
		return d.decideRemove(ctx, obj, cur.object, d.dryRun)
	}
	d.thenRemove = marked.removeNext
	return decision{action: write, object: obj, admitted: q}, nil
}

// checkPreconditions compares what a DELETE demands with the object.
func (r Registry) checkPreconditions(name string, p *metav1.Preconditions, obj resource.Object) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return r.conflict(name, fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated",
			*p.UID, obj.GetUID()))
	}
	if version := obj.GetResourceVersion(); p.ResourceVersion != nil && *p.ResourceVersion != version {
		return r.conflict(name, fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified",
			*p.ResourceVersion, version))
	}
	return nil
}

// mark is what marking an object came to.
type mark struct {
	// mustStay: the object has a reason to stay, or must be seen as being
	// deleted before it goes.
	mustStay bool
	// removeNext: it goes right after it was seen.
	removeNext bool
}

// mark gives obj the finalizers and the deletion timestamp that the request
// asks for.
func (d *deletion) mark(obj resource.Object) mark {
	finalizers := d.finalizers(obj)
	if !slices.Equal(finalizers, obj.GetFinalizers()) {
		obj.SetFinalizers(finalizers)
	}
	if obj.GetDeletionTimestamp() == nil {
		call(d.res.Strategy.PrepareForDelete, obj)
	}
	pending := len(obj.GetFinalizers()) > 0 || hasSpecFinalizers(obj)
	if d.res.Strategy.Graceful == nil {
		if pending {
			d.markAt(obj, 0)
			terminateNamespace(obj)
		}
		return mark{mustStay: pending}
	}
	grace, changed := d.gracePeriod(obj)
	if changed {
		d.markAt(obj, grace)
	}
	switch {
	case pending || grace > 0:
		return mark{mustStay: true}
	case changed:
		return mark{mustStay: true, removeNext: true}
	}
	// It was marked with no time left before, and only the removal is missing.
	return mark{}
}

// maxGraceSeconds is a century: as good as for ever, and neither a Duration nor
// a timestamp of four-digit years overflows.
const maxGraceSeconds = 100 * 365 * 24 * 3600

// gracePeriod returns the grace period that obj has from now on, in seconds,
// and whether that is news. An object that is being deleted can only be given
// less time.
func (d *deletion) gracePeriod(obj resource.Object) (seconds int64, changed bool) {
	requested := d.opts.GracePeriodSeconds
	if obj.GetDeletionTimestamp() == nil {
		return min(max(0, d.res.Strategy.Graceful(obj, requested)), maxGraceSeconds), true
	}
	left := obj.GetDeletionGracePeriodSeconds()
	if left == nil {
		return 0, true
	}
	if requested != nil && *requested < *left {
		return max(0, *requested), true
	}
	return *left, false
}

// markAt sets the deletion timestamp to when the grace period that began with
// the first mark is over.
func (d *deletion) markAt(obj resource.Object, grace int64) {
	begin := d.set.now().Time
	if at := obj.GetDeletionTimestamp(); at != nil {
		begin = at.Time
		if had := obj.GetDeletionGracePeriodSeconds(); had != nil {
			begin = begin.Add(-time.Duration(*had) * time.Second)
		}
	} else if obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	at := metav1.NewTime(begin.Add(time.Duration(grace) * time.Second))
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
}

// finalizers returns the finalizers of obj, with the one that makes the garbage
// collector do what the request wants done with the dependents, and without
// the one that would make it do something else.
func (d *deletion) finalizers(obj resource.Object) []string {
	var want string
	switch policy := d.opts.PropagationPolicy; {
	case policy != nil && *policy == metav1.DeletePropagationOrphan:
		want = metav1.FinalizerOrphanDependents
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		want = metav1.FinalizerDeleteDependents
	case policy != nil:
	case d.opts.OrphanDependents != nil:
		if *d.opts.OrphanDependents {
			want = metav1.FinalizerOrphanDependents
		}
	case hasAny(obj.GetFinalizers(), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents):
		return obj.GetFinalizers()
	case d.res.Strategy.OrphanByDefault:
		want = metav1.FinalizerOrphanDependents
	}
	var out []string
	for _, f := range obj.GetFinalizers() {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			out = append(out, f)
		}
	}
	if want != "" {
		out = append(out, want)
	}
	return out
}

func hasAny(list []string, values ...string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(values, s) })
}

// removeMarked takes a marked object that has no reason to stay out of the
// store. Another writer may have given it a reason since, or have removed it.
func (d *deletion) removeMarked(ctx context.Context, marked *Result) (*Result, error) {
	uid := marked.Object.GetUID()
	start := &state{json: marked.JSON, revision: marked.Revision, object: marked.Object, fresh: true}
	result, err := d.guardedFrom(ctx, start, d.namespace, d.name, false, func(cur *state) (decision, error) {
		switch {
		case cur.object == nil || cur.object.GetUID() != uid:
			return decision{}, errGone
		case !finished(cur.object, cur.object):
			return decision{action: keep}, nil
		}
		return d.decideRemove(ctx, cur.object, cur.object, false)
	})
	if errors.Is(err, errGone) {
		marked.Deleted = true
		return marked, nil
	}
	return result, err
}

// errGone never leaves the package.
var errGone = errors.New("the object is gone")

// finished says whether an object that is being deleted, and would become obj,
// has no reason left to stay.
func finished(obj, old resource.Object) bool {
	if old.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 || hasSpecFinalizers(obj) {
		return false
	}
	grace := old.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// decideRemove takes an object out of the store; obj is the state that the
// answer shows.
func (r Registry) decideRemove(ctx context.Context, obj, old resource.Object, dryRun bool) (decision, error) {
	q := &Request{
		Operation: Remove, Resource: r.res, Namespace: old.GetNamespace(), Name: old.GetName(), Old: old, DryRun: dryRun,
	}
	if err := r.set.admit(ctx, q); err != nil {
		return decision{}, err
	}
	return decision{action: remove, object: obj, admitted: q}, nil
}

// hasSpecFinalizers tells a namespace that is not empty yet.
func hasSpecFinalizers(obj resource.Object) bool {
	ns, ok := obj.(*corev1.Namespace)
	return ok && len(ns.Spec.Finalizers) > 0
}

// terminateNamespace shows in a namespace's phase that it is being deleted.
func terminateNamespace(obj resource.Object) {
	if ns, ok := obj.(*corev1.Namespace); ok {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
}
