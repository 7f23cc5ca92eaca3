package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Kind is the kind of the scale of every kind.
var Kind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

var endpoint = registry.Endpoint{Subresource: "scale", Ownership: registry.OwnershipStated, View: &registry.View{
	Kind: Kind,
	Of: func(r registry.Registry, obj resource.Object) (resource.Object, error) {
		scale, _, err := scaleOf(r, obj)
		return scale, err
	},
	Apply: func(r registry.Registry, obj, view resource.Object) error {
		scale, ok := view.(*autoscalingv1.Scale)
		if !ok {
			return status.BadRequest("admission made a %T of the scale", view)
		}
		return setReplicas(r, obj, scale)
	},
}}

// Get reads how many replicas the object wants and has. Of a custom resource that does not say how
// many it wants there is no scale to read, as in Kubernetes, though there is one to write.
func Get(ctx context.Context, r registry.Registry, namespace, name string) (*autoscalingv1.Scale, error) {
	if err := scalable(r); err != nil {
		return nil, err
	}
	obj, err := r.GetFromStore(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	scale, found, err := scaleOf(r, obj)
	if err == nil && !found {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", specReplicasPath(r)))
	}
	return scale, err
}

// specReplicasPath names the field of the kind that says how many replicas an object wants.
func specReplicasPath(r registry.Registry) string {
	return "." + strings.Join(r.Resource().Scale.ReplicasPath, ".")
}

// Update sets how many replicas the object wants to what update makes of
// the current scale, which it must not change.
func Update(ctx context.Context, r registry.Registry, namespace, name string, update func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error), opts registry.WriteOptions) (*autoscalingv1.Scale, error) {
	return change(ctx, r, namespace, name, opts, func(owners owners, current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		wanted, err := update(current)
		if err != nil {
			return nil, err
		}
		wanted = wanted.DeepCopy()
		owners.manager().Update(ctx, current, wanted, opts.FieldManager)
		return wanted, nil
	})
}

// Patch applies a patch to the object's Scale. decode turns the patched
// JSON into one and says what it thinks of unknown fields.
func Patch(ctx context.Context, r registry.Registry, namespace, name string, p *patch.Patch, decode func([]byte) (*autoscalingv1.Scale, error), opts registry.PatchOptions) (*autoscalingv1.Scale, error) {
	if p.IsApply() {
		return apply(ctx, r, namespace, name, p, opts)
	}
	return Update(ctx, r, namespace, name, func(current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		doc, err := json.Marshal(current)
		if err != nil {
			return nil, r.StoreError(name, err)
		}
		patched, err := p.Apply(doc, &autoscalingv1.Scale{})
		if err != nil {
			return nil, err
		}
		return decode(patched)
	}, opts.WriteOptions)
}

// apply merges the fields that a manager wants into the object's Scale.
func apply(ctx context.Context, r registry.Registry, namespace, name string, p *patch.Patch, opts registry.PatchOptions) (*autoscalingv1.Scale, error) {
	return change(ctx, r, namespace, name, opts.WriteOptions, func(owners owners, current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		merged, err := owners.manager().Apply(ctx, current, p.Wanted(), opts.FieldManager, opts.Force)
		if err != nil {
			return nil, registry.ApplyError(err)
		}
		return merged.(*autoscalingv1.Scale), opts.AfterMerge()
	})
}

// change sets the replicas, and their owners, to what decide makes of the
// current scale.
func change(ctx context.Context, r registry.Registry, namespace, name string, opts registry.WriteOptions, decide func(owners, *autoscalingv1.Scale) (*autoscalingv1.Scale, error)) (*autoscalingv1.Scale, error) {
	if err := scalable(r); err != nil {
		return nil, err
	}
	result, err := r.UpdateThrough(ctx, endpoint, namespace, name, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(r.Resource().GroupResource(), name)
		}
		return scaled(r, name, current, decide)
	}, registry.UpdateOptions{WriteOptions: opts, Unconditional: true})
	if err != nil {
		return nil, err
	}
	scale, _, err := scaleOf(r, result.Object)
	return scale, err
}

func scalable(r registry.Registry) error {
	if r.Resource().Scale == nil {
		return status.BadRequest("%s have no scale subresource", r.Resource().GroupResource())
	}
	return nil
}

// unsaid are the replicas of the scale of an object that does not say how many it wants: a patch
// that leaves them as they are is none.
const unsaid = math.MinInt32

// scaled returns the object with the replicas that decide wants. The other
// fields of a Scale are preconditions or not the client's.
func scaled(r registry.Registry, name string, current resource.Object, decide func(owners, *autoscalingv1.Scale) (*autoscalingv1.Scale, error)) (resource.Object, error) {
	scale, found, err := scaleOf(r, current)
	if err != nil {
		return nil, err
	}
	if !found {
		scale.Spec.Replicas = unsaid
	}
	owners := ownersOf(r, current, scale)
	wanted, err := decide(owners, scale)
	if err != nil {
		return nil, err
	}
	if wanted.Name != name {
		return nil, status.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", wanted.Name, name)
	}
	if ns := current.GetNamespace(); wanted.Namespace != "" && wanted.Namespace != ns {
		return nil, status.BadRequest("the namespace of the object (%s) does not match the namespace on the request (%s)", wanted.Namespace, ns)
	}
	if wanted.Spec.Replicas == unsaid {
		return nil, status.BadRequest("the spec replicas field %q cannot be empty", specReplicasPath(r))
	}
	obj := current.DeepCopyObject().(resource.Object)
	obj.SetResourceVersion(wanted.ResourceVersion)
	obj.SetUID(wanted.UID)
	if err := setReplicas(r, obj, wanted); err != nil {
		return nil, err
	}
	owners.giveTo(obj, wanted)
	return obj, nil
}

// setReplicas gives the object the replicas of a scale. Those of a custom resource are checked as
// fields of it.
func setReplicas(r registry.Registry, obj resource.Object, wanted *autoscalingv1.Scale) error {
	if wanted.Spec.Replicas < 0 && !r.Resource().Stored().Mixed {
		return apierrors.NewInvalid(Kind.GroupKind(), obj.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), wanted.Spec.Replicas, "must be greater than or equal to 0"),
		})
	}
	if err := r.Resource().Scale.Set(obj, wanted.Spec.Replicas); err != nil {
		return status.BadRequest("%v", err)
	}
	return nil
}

// scaleOf returns the scale of an object, and whether that says how many replicas it wants.
func scaleOf(r registry.Registry, obj resource.Object) (*autoscalingv1.Scale, bool, error) {
	spec, status, selector, err := r.Resource().Scale.Get(obj)
	if err != nil {
		return nil, false, apierrors.NewInternalError(fmt.Errorf("scale of %s %q: %w", r.Resource().GroupResource(), obj.GetName(), err))
	}
	scale := &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: Kind.Kind, APIVersion: Kind.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Status: autoscalingv1.ScaleStatus{Replicas: status, Selector: selector},
	}
	if spec != nil {
		scale.Spec.Replicas = *spec
	}
	return scale, spec != nil, nil
}
