package admission

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// ingressClassAnnotation named an ingress's class before spec.ingressClassName did.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// ingressClasses sets the default class in new ingresses that name none.
type ingressClasses struct{ set *registry.Set }

func (i ingressClasses) admit(ctx context.Context, q *registry.Request) error {
	ingress, ok := q.Object.(*networkingv1.Ingress)
	if !ok || q.Operation != registry.Create || q.Subresource != "" || ingress.Spec.IngressClassName != nil {
		return nil
	}
	if _, named := ingress.Annotations[ingressClassAnnotation]; named {
		return nil
	}
	classes, ok := i.set.Lookup(networkingv1.GroupName, "v1", "ingressclasses")
	if !ok {
		return nil
	}
	snapshot, err := classes.Snapshot(ctx)
	if err != nil {
		return err
	}
	var newest *networkingv1.IngressClass
	for o := range snapshot.Range("", "") {
		class, err := registry.DecodeAs[*networkingv1.IngressClass](ctx, classes, o)
		if err != nil {
			return err
		}
		// Of several defaults the newest counts; of those of one second, the first by name.
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" &&
			(newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)) {
			newest = class
		}
	}
	if newest != nil {
		ingress.Spec.IngressClassName = &newest.Name
	}
	return nil
}
