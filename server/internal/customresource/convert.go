package customresource

import (
	"context"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// converter turns objects of any version of a definition into another one.
type converter interface {
	// convert returns the objects, which are its own to change, as of
	// apiVersion, in their order.
	convert(ctx context.Context, objects []*unstructured.Unstructured, apiVersion string) ([]*unstructured.Unstructured, error)
}

// relabel is conversion by strategy None: only apiVersion changes.
type relabel struct{}

func (relabel) convert(_ context.Context, objects []*unstructured.Unstructured, apiVersion string) ([]*unstructured.Unstructured, error) {
	for _, u := range objects {
		u.SetAPIVersion(apiVersion)
	}
	return objects, nil
}

// converterOf keeps the webhook's client while its configuration is the same.
func converterOf(crd *crdMeta, old *definition, hooks *Webhooks) converter {
	if c := crd.Spec.Conversion; c == nil || c.Strategy != apiextensionsv1.WebhookConverter {
		return relabel{}
	}
	if old != nil && equality.Semantic.DeepEqual(old.crd.Spec.Conversion, crd.Spec.Conversion) {
		return old.convert
	}
	return hooks.caller(crd)
}

// byWebhook reports whether conversion calls a webhook.
func (d *definition) byWebhook() bool {
	_, local := d.convert.(relabel)
	return !local
}

// show converts stored objects, which it may change, to a version, with one call
// of a webhook at most.
func (d *definition) show(ctx context.Context, v *version, stored []resource.Object) ([]resource.Object, error) {
	shown := make([]resource.Object, len(stored))
	var foreign []*unstructured.Unstructured
	var places []int
	for i, obj := range stored {
		u := obj.(*unstructured.Unstructured)
		is, err := d.restore(u)
		if err != nil {
			return nil, err
		}
		shown[i] = u
		if is != v {
			foreign, places = append(foreign, u), append(places, i)
		}
	}
	if len(foreign) == 0 {
		return shown, nil
	}
	converted, err := d.convert.convert(ctx, foreign, v.apiVersion())
	if err != nil {
		return nil, err
	}
	for i, u := range converted {
		if _, err := v.prune(u, fromWebhook); err != nil {
			return nil, err
		}
		shown[places[i]] = u
	}
	return shown, nil
}

// fromStorage is resource.Resource.FromStorage for a version.
func (d *definition) fromStorage(ctx context.Context, v *version, stored resource.Object) (resource.Object, error) {
	ctx, cancel := d.boundConversion(ctx)
	defer cancel()
	shown, err := d.show(ctx, v, []resource.Object{stored})
	if err != nil {
		return nil, err
	}
	return shown[0], nil
}

// boundConversion gives a conversion that calls a webhook at most
// conversionTimeout of the request's time.
func (d *definition) boundConversion(ctx context.Context) (context.Context, context.CancelFunc) {
	if !d.byWebhook() {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, conversionTimeout, errConversionTimeout)
}

var errNoStorageVersion = errors.New("the CustomResourceDefinition has no storage version")

// toStorage converts an object of any version to the one that is written: complete
// by the schema of the storage version, so that clients of that version can be
// sent it as it is. obj is not modified.
func (d *definition) toStorage(ctx context.Context, obj resource.Object) (resource.Object, error) {
	u := obj.(*unstructured.Unstructured)
	storage := d.storage()
	if storage == nil {
		return nil, errNoStorageVersion
	}
	if u.GetAPIVersion() == storage.apiVersion() {
		return u, nil
	}
	ctx, cancel := d.boundConversion(ctx)
	defer cancel()
	converted, err := d.convert.convert(ctx, []*unstructured.Unstructured{u.DeepCopy()}, storage.apiVersion())
	if err != nil {
		return nil, err
	}
	if _, err := storage.prune(converted[0], fromWebhook); err != nil {
		return nil, err
	}
	return converted[0], storage.defaults(converted[0])
}
