package pods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
)

// Burst is the most pods that one reconciliation creates or deletes, so that
// a mistaken count of a million does its harm slowly.
const Burst = 500

// Control creates and deletes pods on behalf of owners of one kind, and keeps
// the expectations about them.
type Control struct {
	api          client.Resource[*corev1.Pod]
	events       *events.Recorder
	kind         schema.GroupVersionKind
	Expectations *controller.Expectations
}

// NewControl returns a Control for owners of a kind.
func NewControl(c *client.Client, recorder *events.Recorder, kind schema.GroupVersionKind) *Control {
	return &Control{api: client.For[*corev1.Pod](c), events: recorder, kind: kind, Expectations: controller.NewExpectations()}
}

// Watch makes handlers for a pod informer that keep the expectations up to
// date and add the owner of each changed pod to the loop. Pods without an
// owner are given to orphan, which may be nil: another controller may want to adopt
// them.
func (c *Control) Watch(add func(controller.Key), orphan func(*corev1.Pod)) informer.Handler[*corev1.Pod] {
	owner := func(pod *corev1.Pod) {
		ref := metav1.GetControllerOfNoCopy(pod)
		switch {
		case ref == nil && orphan != nil && pod.DeletionTimestamp == nil:
			orphan(pod)
		case c.owns(ref):
			add(controller.Key{Namespace: pod.Namespace, Name: ref.Name})
		}
	}
	return informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, _ bool) {
			if pod.DeletionTimestamp != nil {
				c.Expectations.Observed(pod.UID)
			} else if c.owns(metav1.GetControllerOfNoCopy(pod)) {
				c.Expectations.Created(pod.UID)
			}
			owner(pod)
		},
		Update: func(old, pod *corev1.Pod) {
			if old.UID != pod.UID {
				c.Expectations.Observed(old.UID)
				if c.owns(metav1.GetControllerOfNoCopy(pod)) {
					c.Expectations.Created(pod.UID)
				}
			}
			if pod.DeletionTimestamp != nil {
				c.Expectations.Observed(pod.UID)
			}
			// A pod that changed hands concerns both owners.
			if was := metav1.GetControllerOfNoCopy(old); was != nil && !sameOwner(was, metav1.GetControllerOfNoCopy(pod)) {
				owner(old)
			}
			owner(pod)
		},
		Delete: func(pod *corev1.Pod, _ bool) {
			c.Expectations.Observed(pod.UID)
			owner(pod)
		},
	}
}

func (c *Control) owns(ref *metav1.OwnerReference) bool {
	return ref != nil && ref.Kind == c.kind.Kind && groupOf(ref.APIVersion) == c.kind.Group
}

func sameOwner(a, b *metav1.OwnerReference) bool { return b != nil && a.UID == b.UID }

func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// Settled reports whether the informer has shown everything that was done for
// an owner, and if not, when to look again at the latest. Ask before reading
// the informer's pods.
func (c *Control) Settled(ctx context.Context, key controller.Key) (settled bool, again time.Duration) {
	return c.Expectations.Ask(ctx, key, func(ctx context.Context, name string) (types.UID, error) {
		pod, err := c.api.Namespace(key.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return pod.UID, nil
	})
}

// Create makes n pods from a template, first one, then twice as many at a
// time: if creation is refused, by a quota say, few calls are wasted. change,
// if not nil, sees each pod before it is sent. Creation ends at the first
// failure.
func (c *Control) Create(ctx context.Context, owner client.Object, template *corev1.PodTemplateSpec, n int, change func(i int, pod *corev1.Pod)) error {
	for done, batch := 0, 1; done < n; batch *= 2 {
		batch = min(batch, n-done)
		group, groupCtx := errgroup.WithContext(ctx)
		for i := done; i < done+batch; i++ {
			group.Go(func() error {
				pod := c.fromTemplate(owner, template)
				if change != nil {
					change(i, pod)
				}
				return c.createOne(groupCtx, owner, pod)
			})
		}
		err := group.Wait()
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // the owner is about to go too
		}
		if err != nil {
			return err
		}
		done += batch
	}
	return nil
}

func (c *Control) createOne(ctx context.Context, owner client.Object, pod *corev1.Pod) error {
	created, err := c.api.Namespace(owner.GetNamespace()).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && ctx.Err() == nil {
			c.events.Warning(owner, "FailedCreate", "Error creating: %v", err)
		}
		return fmt.Errorf("create pod: %w", err)
	}
	c.Expectations.ExpectCreated(controller.KeyOf(owner), created.Name, created.UID)
	c.events.Normal(owner, "SuccessfulCreate", "Created pod: %s", created.Name)
	return nil
}

func (c *Control) fromTemplate(owner client.Object, template *corev1.PodTemplateSpec) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       owner.GetNamespace(),
			GenerateName:    owner.GetName() + "-",
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, c.kind)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// deletionsAtOnce bounds the concurrent deletions of one reconciliation.
const deletionsAtOnce = 16

// Delete removes pods gracefully. A pod that is gone already is not an error.
func (c *Control) Delete(ctx context.Context, owner client.Object, pods []*corev1.Pod) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deletionsAtOnce)
	for _, pod := range pods {
		group.Go(func() error { return c.deleteOne(ctx, owner, pod) })
	}
	return group.Wait()
}

func (c *Control) deleteOne(ctx context.Context, owner client.Object, pod *corev1.Pod) error {
	c.Expectations.ExpectDeleted(controller.KeyOf(owner), pod.UID)
	err := c.api.Namespace(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	switch {
	case err == nil:
		c.events.Normal(owner, "SuccessfulDelete", "Deleted pod: %s", pod.Name)
		return nil
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		c.Expectations.Observed(pod.UID)
		return nil
	}
	c.Expectations.Observed(pod.UID)
	if ctx.Err() == nil {
		c.events.Warning(owner, "FailedDelete", "Error deleting: %v", err)
	}
	return fmt.Errorf("delete pod %s: %w", pod.Name, err)
}
