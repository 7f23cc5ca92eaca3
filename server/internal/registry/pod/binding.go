package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/status"
)

var bindingEndpoint = registry.Endpoint{Subresource: "binding", Scope: registry.ScopeBinding, Ownership: registry.OwnershipKept}

// Bind assigns a pod to the node that the binding names, and gives it the labels and
// annotations of the binding. It is a Conflict if the pod is assigned already or is being
// deleted.
func Bind(ctx context.Context, pods registry.Registry, namespace, name string, binding *corev1.Binding, opts registry.WriteOptions) (*registry.Result, error) {
	if err := checkBinding(namespace, name, binding); err != nil {
		return nil, err
	}
	admitted, err := pods.AdmitUnstored(ctx, registry.Unstored{
		Subresource: "binding", Kind: corev1.SchemeGroupVersion.WithKind("Binding"), Namespace: namespace, Name: name, Object: binding, Options: opts,
	})
	if err != nil {
		return nil, err
	}
	var ok bool
	if binding, ok = admitted.(*corev1.Binding); !ok {
		return nil, status.BadRequest("admission made a %T of the binding", admitted)
	}
	if err := checkBinding(namespace, name, binding); err != nil {
		return nil, err
	}
	opts.Admitted = true
	updater := func(current resource.Object) (resource.Object, error) {
		pod, ok := current.(*corev1.Pod)
		if !ok {
			return nil, status.BadRequest("%s cannot be bound", pods.Resource().GroupResource())
		}
		if err := bindable(pod); err != nil {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, name, err)
		}
		bound := pod.DeepCopy()
		bound.UID, bound.ResourceVersion = binding.UID, binding.ResourceVersion
		bound.Spec.NodeName = binding.Target.Name
		bound.Status.NominatedNodeName = "" // it has the node, or another one
		for key, value := range binding.Annotations {
			if bound.Annotations == nil {
				bound.Annotations = make(map[string]string, len(binding.Annotations))
			}
			bound.Annotations[key] = value
		}
		podspec.DropInitContainerAnnotations(bound.Annotations)
		for key, value := range binding.Labels {
			if bound.Labels == nil {
				bound.Labels = make(map[string]string, len(binding.Labels))
			}
			bound.Labels[key] = value
		}
		markScheduled(bound, pods.Set().Now())
		return bound, nil
	}
	return pods.UpdateThrough(ctx, bindingEndpoint, namespace, name, updater, registry.UpdateOptions{WriteOptions: opts, Unconditional: true})
}

func checkBinding(namespace, name string, binding *corev1.Binding) error {
	if binding.Name != "" && binding.Name != name {
		return status.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", binding.Name, name)
	}
	if binding.Namespace != "" && binding.Namespace != namespace {
		return status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	target := field.NewPath("target")
	var errs field.ErrorList
	if kind := binding.Target.Kind; kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(target.Child("kind"), kind, []string{"Node", "<empty>"}))
	}
	if binding.Target.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	} else if len(errs) == 0 {
		for _, message := range apivalidation.NameIsDNSSubdomain(binding.Target.Name, false) {
			errs = append(errs, field.Invalid(target.Child("name"), binding.Target.Name, message))
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Binding"}, name, errs)
	}
	return nil
}

func bindable(pod *corev1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return fmt.Errorf("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return fmt.Errorf("pod %v has non-empty .spec.schedulingGates", pod.Name)
	}
	return nil
}

// markScheduled sets the condition PodScheduled. Which generation of the pod it is about, the kubelet says.
func markScheduled(pod *corev1.Pod, now metav1.Time) {
	scheduled := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now,
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			if c.Status == corev1.ConditionTrue {
				scheduled.LastTransitionTime = c.LastTransitionTime
			}
			*c = scheduled
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, scheduled)
}
