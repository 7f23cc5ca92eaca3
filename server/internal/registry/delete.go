package registry

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// Delete deletes an object, or marks it as being deleted if finalizers or a
// grace period say that it must stay for a while: then the Result is not
// Deleted, and the write that takes away the last reason removes it. opts may
// be nil. A pod is always marked first and removed then, in two writes.
func (r Registry) Delete(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) (*Result, error) {
	return r.delete(ctx, namespace, name, &deletion{opts: opts}, false)
}

// DeleteAdmitted is Delete by the server itself, or in consequence of a request that
// was admitted in another form: webhooks and policies are not asked (Request.Admitted).
func (r Registry) DeleteAdmitted(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) (*Result, error) {
	return r.delete(ctx, namespace, name, &deletion{opts: opts}, true)
}

func (r Registry) delete(ctx context.Context, namespace, name string, d *deletion, admitted bool) (*Result, error) {
	if d.opts == nil {
		d.opts = &metav1.DeleteOptions{}
	}
	opts := d.opts
	if errs := validation.ValidateDeleteOptions(opts); len(errs) > 0 {
		return nil, invalidDeleteOptions(errs)
	}
	if d.listed == "" {
		if err := r.mayDelete(name); err != nil {
			return nil, err
		}
		if !ignoresReadError(opts) {
			r.warnOfOrphans(ctx, opts)
		}
	}
	w := &pendingWrite{
		registry: r, verb: d, namespace: namespace, name: name, dryRun: len(opts.DryRun) > 0, deleteOptions: opts, admitted: admitted,
	}
	result, err := w.run(ctx)
	if err == nil && d.thenRemove && !w.dryRun {
		result, err = w.removeMarked(ctx, result)
	}
	if err != nil {
		return nil, err
	}
	if d.thenRemove && w.dryRun {
		result.Deleted = true
	}
	if result.Deleted && !r.res.Strategy.ReturnDeleted {
		result.Status = r.deletedStatus(name, result.Object.GetUID())
	}
	return result, nil
}

// mayDelete refuses to delete what every cluster has.
func (r Registry) mayDelete(name string) error {
	if r.res.Strategy.Undeletable == nil {
		return nil
	}
	if why := r.res.Strategy.Undeletable(name); why != "" {
		return apierrors.NewForbidden(r.res.GroupResource(), name, errors.New(why))
	}
	return nil
}

// warnOfOrphans tells a client that does not say what becomes of the dependents that they stay.
func (r Registry) warnOfOrphans(ctx context.Context, opts *metav1.DeleteOptions) {
	if text := r.res.Strategy.OrphanWarning; text != "" && opts.PropagationPolicy == nil && opts.OrphanDependents == nil {
		reporter.Warn(ctx, text)
	}
}

func invalidDeleteOptions(errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
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

// deletion is the verb delete.
type deletion struct {
	opts *metav1.DeleteOptions
	// listed is the only object to delete: another that has its name by now is not found.
	// "": whichever has the name.
	listed types.UID
	// thenRemove: the last decision was to mark an object that has no reason to
	// stay, so that it is removed next.
	thenRemove bool
}

func (d *deletion) decide(_ context.Context, w *pendingWrite) error {
	d.thenRemove = false
	if w.current.object == nil || d.listed != "" && d.listed != w.current.object.GetUID() {
		return w.registry.notFound(w.name)
	}
	if ignoresReadError(d.opts) {
		return w.registry.conflict(w.name, errDecodable)
	}
	words := w.registry.res.Strategy.PreconditionFailed
	if d.listed != "" {
		words = "" // which Kubernetes has for one object only
	}
	if err := w.registry.checkPreconditions(w.name, d.opts.Preconditions, w.current.object, words); err != nil {
		return err
	}
	if w.current.object.GetDeletionTimestamp() != nil && hasSpecFinalizers(w.current.object) {
		return nil // a namespace stays as it is until it is empty
	}
	w.operation, w.action, w.object = Delete, remove, w.current.object.DeepCopyObject().(resource.Object)
	if stays := d.mark(w.registry, w.object); stays != noReason {
		w.action, d.thenRemove = mark, stays == toBeSeen
	}
	return nil
}

// reasonToStay is why a deleted object is not removed at once.
type reasonToStay uint8

const (
	noReason   reasonToStay = iota
	unfinished              // finalizers or a grace period
	toBeSeen                // watchers must see it being deleted before it goes
)

// errDecodable refuses a deletion that is meant for what cannot be read: of what can, it would skip
// finalizers and preconditions.
var errDecodable = errors.New("unsafe deletion is not allowed because the object is decodable from storage")

// ignoresReadError reports whether a deletion is meant for what cannot be read.
func ignoresReadError(opts *metav1.DeleteOptions) bool {
	ignore := opts.IgnoreStoreReadErrorWithClusterBreakingPotential
	return ignore != nil && *ignore
}

// mark gives obj the finalizers and the deletion timestamp that the request
// asks for, and returns the reason that the object then has to stay.
func (d *deletion) mark(r Registry, obj resource.Object) reasonToStay {
	strategy := &r.res.Strategy
	begins := obj.GetDeletionTimestamp() == nil
	if finalizers := d.finalizers(obj, strategy); !sets.New(finalizers...).Equal(sets.New(obj.GetFinalizers()...)) {
		obj.SetFinalizers(finalizers)
	}
	if begins && strategy.PrepareForDelete != nil {
		strategy.PrepareForDelete(obj, r.set.Now())
	}
	pending := len(obj.GetFinalizers()) > 0 || hasSpecFinalizers(obj)
	if strategy.Graceful == nil {
		switch {
		case begins && strategy.MarkedByTime:
			obj.SetDeletionTimestamp(new(r.set.Now()))
		case !pending:
			return noReason
		default:
			r.set.markAt(obj, 0)
		}
		terminateNamespace(obj)
		return unfinished
	}
	grace, changed := d.gracePeriod(obj, strategy.Graceful)
	if changed {
		r.set.markAt(obj, grace)
		endNotBefore(r.set.Now(), obj)
	}
	switch {
	case pending || grace > 0:
		return unfinished
	case changed:
		return toBeSeen
	}
	return noReason // it was marked with no time left before, and only the removal is missing
}

// maxGraceSeconds is a century: neither a Duration nor a timestamp with a
// four-digit year overflows.
const maxGraceSeconds = 100 * 365 * 24 * 3600

// gracePeriod returns the grace period that obj has from now on, in seconds,
// and whether that is a change. The grace period of an object that is being
// deleted can only be shortened. A negative one is a second, as in Kubernetes.
func (d *deletion) gracePeriod(obj resource.Object, graceful func(resource.Object, *int64) int64) (seconds int64, changed bool) {
	requested := d.opts.GracePeriodSeconds
	if requested != nil && *requested < 0 {
		requested = new(int64(1))
	}
	if obj.GetDeletionTimestamp() == nil {
		return min(max(0, graceful(obj, requested)), maxGraceSeconds), true
	}
	left := obj.GetDeletionGracePeriodSeconds()
	if left == nil {
		return 0, true
	}
	if *left < 0 { // as another server has stored it
		left = new(int64(1))
	}
	if requested != nil && *requested < *left {
		return *requested, true
	}
	return *left, false
}

// markAt sets the deletion timestamp to the end of the grace period, which began
// when the object was first marked.
func (s *Set) markAt(obj resource.Object, grace int64) {
	begin := s.Now().Time
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

// endNotBefore moves the end of a grace period that a shorter one has put into the past
// to now. A second of grace is left unless there is none at all, so that the object's
// kubelet and not this request removes it.
func endNotBefore(now metav1.Time, obj resource.Object) {
	if !obj.GetDeletionTimestamp().Before(&now) {
		return
	}
	grace := min(1, *obj.GetDeletionGracePeriodSeconds())
	obj.SetDeletionTimestamp(&now)
	obj.SetDeletionGracePeriodSeconds(&grace)
}

// finalizers returns the finalizers of obj, with the one that makes the garbage
// collector treat the dependents as the request wants, and without the other.
func (d *deletion) finalizers(obj resource.Object, strategy *resource.Strategy) []string {
	if first := strategy.FirstFinalizers; first != nil && obj.GetDeletionTimestamp() == nil && d.listed == "" {
		return first(obj, d.opts)
	}
	var want string
	switch policy := d.opts.PropagationPolicy; {
	case strategy.NoDependents:
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
	case strategy.OrphanByDefault:
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

// removeMarked takes an object that w has marked, and that has no reason to stay,
// out of the store. Another writer may have given it a reason since, or have
// removed it.
//
// It does not wait until watches have been sent the mark: what a controller does with an event takes
// its own time, so that the marked object would be read more often and not always. And a
// client or a server that ends meanwhile leaves a marked object that only a controller removes.
func (w *pendingWrite) removeMarked(ctx context.Context, marked *Result) (*Result, error) {
	next := &pendingWrite{
		registry: w.registry, verb: removal{marked.Object.GetUID()}, namespace: w.namespace, name: w.name, admitted: w.admitted,
		current: &state{json: marked.JSON, revision: marked.Revision, object: marked.Object, fresh: true},
	}
	result, err := next.run(ctx)
	if errors.Is(err, errGone) {
		marked.Deleted = true
		return marked, nil
	}
	return result, err
}

// removal is the verb that takes a marked object out of the store.
type removal struct{ uid types.UID }

func (r removal) decide(_ context.Context, w *pendingWrite) error {
	switch {
	case w.current.object == nil || w.current.object.GetUID() != r.uid:
		return errGone
	case finished(w.current.object, w.current.object):
		w.operation, w.action, w.object = Remove, remove, w.current.object
	}
	return nil
}

// errGone never leaves the package.
var errGone = errors.New("the object is gone")

// finished reports whether an object that is being deleted, and is about to
// become obj, has no reason to stay any more.
func finished(obj, old resource.Object) bool {
	if old.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 || hasSpecFinalizers(obj) {
		return false
	}
	grace := old.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// hasSpecFinalizers reports whether obj is a namespace that is not empty yet.
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
