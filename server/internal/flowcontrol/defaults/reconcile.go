package defaults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// Ensure creates the default objects that are missing, and gives the others their default
// specs: always if they are mandatory; if they are suggested, unless an operator has
// changed them (see autoUpdates). It removes those that former versions suggested. Source:
// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#maintenance-of-the-mandatory-and-suggested-configuration-objects.
func Ensure(ctx context.Context, set *registry.Set) error {
	levels, schemas := map[string]resource.Object{}, map[string]resource.Object{}
	for _, l := range PriorityLevels() {
		levels[l.Name] = l
	}
	for _, s := range FlowSchemas() {
		schemas[s.Name] = s
	}
	// Levels come first: a schema without one matches nothing.
	return orFirst(
		func() error { return ensureAll(ctx, set, "prioritylevelconfigurations", levels) },
		func() error { return ensureAll(ctx, set, "flowschemas", schemas) },
		func() error { return removeFormer(ctx, set, "flowschemas", schemas) },
		func() error { return removeFormer(ctx, set, "prioritylevelconfigurations", levels) },
	)
}

// orFirst calls functions until one fails.
func orFirst(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func registryOf(set *registry.Set, plural string) (registry.Registry, error) {
	r, ok := set.Lookup(flowcontrolv1.GroupName, "v1", plural)
	if !ok {
		return r, fmt.Errorf("%s are not served", plural)
	}
	return r, nil
}

func ensureAll(ctx context.Context, set *registry.Set, plural string, all map[string]resource.Object) error {
	r, err := registryOf(set, plural)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for name, wanted := range all {
		group.Go(func() error {
			if err := ensure(ctx, r, wanted); err != nil {
				return fmt.Errorf("default %s %s: %w", r.Resource().Singular, name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// attempts bounds how often a write is repeated that another server's overtakes.
const attempts = 4

func ensure(ctx context.Context, r registry.Registry, wanted resource.Object) error {
	var err error
	for range attempts {
		_, err = r.Update(ctx, "", wanted.GetName(), func(current resource.Object) (resource.Object, error) {
			if current == nil {
				return wanted.DeepCopyObject().(resource.Object), nil
			}
			return reconciled(current, wanted), nil
		}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, MayCreate: true, Unconditional: true})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

// autoUpdates reports whether a stored object is kept up to date: its annotation says so,
// or, if it has none, that it was never changed.
func autoUpdates(obj resource.Object) bool {
	if update, err := strconv.ParseBool(obj.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey]); err == nil {
		return update
	}
	return obj.GetGeneration() == 1
}

// reconciled returns the stored object as it should be.
func reconciled(current, wanted resource.Object) resource.Object {
	obj := current.DeepCopyObject().(resource.Object)
	update := isMandatory(wanted) || autoUpdates(obj)
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[flowcontrolv1.AutoUpdateAnnotationKey] = strconv.FormatBool(update)
	obj.SetAnnotations(annotations)
	if !update {
		return obj
	}
	switch wanted := wanted.(type) {
	case *flowcontrolv1.FlowSchema:
		obj.(*flowcontrolv1.FlowSchema).Spec = *wanted.Spec.DeepCopy()
	case *flowcontrolv1.PriorityLevelConfiguration:
		level := obj.(*flowcontrolv1.PriorityLevelConfiguration)
		fixed := wanted.DeepCopy()
		if isMandatory(wanted) {
			KeepSettable(fixed, level)
		}
		if !equality.Semantic.DeepEqual(level.Spec, fixed.Spec) {
			level.Spec = fixed.Spec
		}
	}
	return obj
}

func isMandatory(obj resource.Object) bool {
	switch obj.(type) {
	case *flowcontrolv1.FlowSchema:
		return slices.ContainsFunc(bootstrap.MandatoryFlowSchemas, func(s *flowcontrolv1.FlowSchema) bool { return s.Name == obj.GetName() })
	case *flowcontrolv1.PriorityLevelConfiguration:
		return slices.ContainsFunc(bootstrap.MandatoryPriorityLevelConfigurations, func(l *flowcontrolv1.PriorityLevelConfiguration) bool { return l.Name == obj.GetName() })
	}
	return false
}

// removeFormer deletes the objects that are kept up to date and are no defaults.
func removeFormer(ctx context.Context, set *registry.Set, plural string, all map[string]resource.Object) error {
	r, err := registryOf(set, plural)
	if err != nil {
		return err
	}
	snapshot, err := r.Snapshot(ctx)
	if err != nil {
		return err
	}
	for o := range snapshot.Range("", "") {
		name := o.Attributes.Name
		if all[name] != nil {
			continue
		}
		obj, err := registry.DecodeAs[resource.Object](ctx, r, o)
		if err != nil || obj.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey] != "true" {
			continue
		}
		uid, version := obj.GetUID(), obj.GetResourceVersion()
		_, err = r.DeleteAdmitted(ctx, "", name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("former default %s %s: %w", r.Resource().Singular, name, err)
		}
	}
	return nil
}
