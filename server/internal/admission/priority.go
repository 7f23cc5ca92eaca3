package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// priorities sets the priority of pods to the value of their priority class, and keeps
// the default class the only one.
type priorities struct{ set *registry.Set }

var classesResource = schema.GroupResource{Group: schedulingv1.GroupName, Resource: "priorityclasses"}

func (p priorities) admit(ctx context.Context, q *registry.Request) error {
	if pod := podOf(q); pod != nil {
		if old, ok := q.Old.(*corev1.Pod); ok && q.Operation == registry.Update {
			keepPriority(&pod.Spec, &old.Spec)
			return nil
		}
		return p.assign(ctx, q, &pod.Spec)
	}
	return nil
}

// check refuses a second default class.
func (p priorities) check(ctx context.Context, q *registry.Request) error {
	class, ok := q.Object.(*schedulingv1.PriorityClass)
	if ok && q.Resource.GroupResource() == classesResource && class.GlobalDefault {
		return p.onlyDefault(ctx, q)
	}
	return nil
}

// keepPriority takes over the priority of the current pod, for clients that replace
// a pod with the manifest that they created it from.
func keepPriority(spec, old *corev1.PodSpec) {
	if spec.PriorityClassName == "" {
		spec.PriorityClassName = old.PriorityClassName
	}
	if spec.Priority == nil {
		spec.Priority = old.Priority
	}
	if spec.PreemptionPolicy == nil {
		spec.PreemptionPolicy = old.PreemptionPolicy
	}
}

// assign computes a new pod's priority.
func (p priorities) assign(ctx context.Context, q *registry.Request, spec *corev1.PodSpec) error {
	class, err := p.classOf(ctx, spec.PriorityClassName)
	if apierrors.IsNotFound(err) {
		return q.Forbidden(fmt.Errorf("no PriorityClass with name %v was found", spec.PriorityClassName))
	}
	if err != nil {
		return err
	}
	preemption := corev1.PreemptLowerPriority
	if class.PreemptionPolicy != nil {
		preemption = *class.PreemptionPolicy
	}
	if spec.Priority != nil && *spec.Priority != class.Value {
		return q.Forbidden(fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name",
			*spec.Priority, class.Value))
	}
	if spec.PreemptionPolicy != nil && *spec.PreemptionPolicy != preemption {
		return q.Forbidden(fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name",
			*spec.PreemptionPolicy, preemption))
	}
	spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = class.Name, &class.Value, &preemption
	return nil
}

// classOf returns the class of a name. Without a name it returns the default class,
// or one without a name and of value 0 if there is no default.
func (p priorities) classOf(ctx context.Context, name string) (*schedulingv1.PriorityClass, error) {
	classes, ok := p.set.Lookup(schedulingv1.GroupName, "v1", "priorityclasses")
	if !ok {
		return &schedulingv1.PriorityClass{}, nil
	}
	if name != "" {
		return registry.GetAs[*schedulingv1.PriorityClass](ctx, classes, "", name)
	}
	chosen := &schedulingv1.PriorityClass{}
	err := eachDefault(ctx, classes, func(class *schedulingv1.PriorityClass) {
		if chosen.Name == "" || class.Value < chosen.Value {
			chosen = class
		}
	})
	return chosen, err
}

// isDefaultForm is kept with a cached class and says whether it is the default, so
// that a new pod does not have to decode all classes.
var isDefaultForm = watchcache.NewForm("priority class is the default")

// eachDefault calls fn with the classes that are the default, of which there
// can be several for a moment.
func eachDefault(ctx context.Context, classes registry.Registry, fn func(*schedulingv1.PriorityClass)) error {
	snapshot, err := classes.Snapshot(ctx)
	if err != nil {
		return err
	}
	for o := range snapshot.Range("", "") {
		isDefault, err := o.Form(isDefaultForm, func(o *watchcache.Object) ([]byte, error) {
			class, err := registry.DecodeAs[*schedulingv1.PriorityClass](ctx, classes, o)
			if err != nil || !class.GlobalDefault {
				return nil, err
			}
			return []byte{1}, nil
		})
		if err != nil || len(isDefault) == 0 {
			continue // a class that cannot be decoded is no default
		}
		class, err := registry.DecodeAs[*schedulingv1.PriorityClass](ctx, classes, o)
		if err != nil {
			return err
		}
		fn(class)
	}
	return nil
}

func (p priorities) onlyDefault(ctx context.Context, q *registry.Request) error {
	classes := p.set.For(q.Resource)
	var other string
	err := eachDefault(ctx, classes, func(class *schedulingv1.PriorityClass) {
		if class.Name != q.Name || q.Operation == registry.Create { // one that is there already is another one
			other = class.Name
		}
	})
	if err != nil || other == "" {
		return err
	}
	return q.Forbidden(fmt.Errorf("PriorityClass %s is already marked as default. Only one default can exist", other))
}
