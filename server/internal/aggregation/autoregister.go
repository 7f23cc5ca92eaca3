package aggregation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// managedLabel marks the APIServices that servers write, and says when: once at the start of a
// server, or always. One without it is its user's.
const (
	managedLabel   = "kube-aggregator.kubernetes.io/automanaged"
	managedOnStart = "onstart"
	managedAlways  = "true"
)

// AutoRegister writes the APIServices of what this server serves itself, by kube-aggregator's
// rules. Those of its own groups are written once, by Ensure: what users change or delete
// then stays so until the next start. Those of custom resources follow the definitions while
// Run runs. It leaves alone those that users have created, or taken the label from.
//
// Nothing goes by these objects: requests and discovery go by what is served. Servers on one
// store write the same. One that was started with other groups deletes, as it starts, the
// objects of those that it does not have, as kube-apiserver does.
type AutoRegister struct {
	services, definitions registry.Registry
	builtin               map[string]*apiregistrationv1.APIService // by name
	log                   *slog.Logger
	retry                 time.Duration

	// What follows is used by Run alone.
	started    bool // what there was at the start has been seen
	registered map[string]registered
	defined    map[string]defined
}

// registered is what counts of an APIService.
type registered struct {
	of   *watchcache.Object
	read struct {
		Metadata metav1.ObjectMeta
		Spec     apiregistrationv1.APIServiceSpec
	}
}

// defined are the versions that a definition has served, by the names of their APIServices.
type defined struct {
	of       *watchcache.Object
	versions map[string]schema.GroupVersion
}

// NewAutoRegister returns what writes the APIServices of the given resources, and of
// definitions. It does nothing before Ensure and Run.
func NewAutoRegister(set *registry.Set, builtin []*resource.Resource, log *slog.Logger) (*AutoRegister, error) {
	r := &AutoRegister{
		builtin: map[string]*apiregistrationv1.APIService{}, log: log, retry: time.Second,
		registered: map[string]registered{}, defined: map[string]defined{},
	}
	var ok, defines bool
	r.services, ok = set.Lookup(apiregistrationv1.GroupName, "v1", "apiservices")
	r.definitions, defines = set.Lookup(apiextensionsv1.GroupName, "v1", "customresourcedefinitions")
	if !ok || !defines {
		return nil, errors.New("aggregation: apiservices or customresourcedefinitions are not served")
	}
	for _, res := range builtin {
		gv := res.GroupVersion()
		// APIServices are what the others are registered by, and have none.
		if priority, known := BuiltinPriority(gv); known && gv.Group != apiregistrationv1.GroupName {
			obj := localService(gv, priority, managedOnStart)
			r.builtin[obj.Name] = obj
		}
	}
	return r, nil
}

func nameOf(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

func localService(gv schema.GroupVersion, priority Priority, managed string) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(gv), Labels: map[string]string{managedLabel: managed}},
		Spec:       localSpec(gv, priority),
	}
}

func localSpec(gv schema.GroupVersion, priority Priority) apiregistrationv1.APIServiceSpec {
	return apiregistrationv1.APIServiceSpec{
		Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: priority.Group, VersionPriority: priority.Version,
	}
}

// Ensure writes the APIServices of the server's own groups that are missing, or say something
// else. It asks the store and not the caches, so that it can run while they fill, and
// writes all at the same time, so that the store can make them durable together.
func (r *AutoRegister) Ensure(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, want := range r.builtin {
		group.Go(func() error {
			if err := r.write(ctx, want); err != nil {
				return fmt.Errorf("APIService %s: %w", want.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// write creates an APIService, or corrects one that servers manage.
func (r *AutoRegister) write(ctx context.Context, want *apiregistrationv1.APIService) error {
	_, err := r.services.Update(ctx, "", want.Name, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			return want.DeepCopy(), nil
		}
		has, err := registry.As[*apiregistrationv1.APIService](r.services, current)
		if err != nil || has.Labels[managedLabel] != managedOnStart && has.Labels[managedLabel] != managedAlways || sameSpec(&has.Spec, &want.Spec) {
			return current, err
		}
		changed := has.DeepCopy()
		changed.Spec = *want.Spec.DeepCopy()
		return changed, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, MayCreate: true, Unconditional: true})
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil // by another server, or a user, meanwhile
	}
	return err
}

// sameSpec compares with the spec of a local APIService.
func sameSpec(has, want *apiregistrationv1.APIServiceSpec) bool {
	return has.Service == nil && len(has.CABundle) == 0 && !has.InsecureSkipTLSVerify && has.Group == want.Group && has.Version == want.Version &&
		has.GroupPriorityMinimum == want.GroupPriorityMinimum && has.VersionPriority == want.VersionPriority
}

// Run follows the definitions until ctx ends.
func (r *AutoRegister) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		r.log.Warn("APIServices of custom resources cannot be written: the server tries again", "error", err)
		select {
		case <-time.After(r.retry):
		case <-ctx.Done():
		}
	}
}

// follow is Run until something fails.
func (r *AutoRegister) follow(ctx context.Context) error {
	definitions, err := r.definitions.Watch(ctx, nil)
	if err != nil {
		return err
	}
	defer definitions.Close()
	services, err := r.services.Watch(ctx, nil)
	if err != nil {
		return err
	}
	defer services.Close()
	for {
		_, definitionsErr := definitions.Skip()
		_, servicesErr := services.Skip()
		if err := errors.Join(definitionsErr, servicesErr); err != nil {
			return err
		}
		if err := r.reconcile(ctx); err != nil {
			return err
		}
		select {
		case <-definitions.Ready():
		case <-services.Ready():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reconcile compares the APIServices with the definitions. It reads these later: what was
// registered before and is not defined now is left over, although this server may learn of
// the writes of others late. So servers on one store never write against each other.
func (r *AutoRegister) reconcile(ctx context.Context) error {
	services, err := r.services.Snapshot(ctx)
	if err != nil {
		return err
	}
	definitions, err := r.definitions.Cache().NotOlderThan(ctx, services.Revision())
	if err != nil {
		return err
	}
	r.readServices(services)
	wanted := r.wanted(definitions)
	var failed error
	for name, gv := range wanted {
		has, exists := r.registered[name]
		want := localSpec(gv, CustomPriority)
		if exists && (!r.manages(&has) || sameSpec(&has.read.Spec, &want)) {
			continue
		}
		failed = errors.Join(failed, r.write(ctx, localService(gv, CustomPriority, managedAlways)))
	}
	for name, has := range r.registered {
		if _, ok := wanted[name]; !ok && r.builtin[name] == nil && r.manages(&has) {
			failed = errors.Join(failed, r.remove(ctx, name, &has.read.Metadata))
		}
	}
	r.started = r.started || failed == nil
	return failed
}

// manages reports whether an APIService that is not one of the server's own groups is to be kept
// in order. What was written for a start counts only at the next one.
func (r *AutoRegister) manages(has *registered) bool {
	switch has.read.Metadata.Labels[managedLabel] {
	case managedAlways:
		return true
	case managedOnStart:
		return !r.started
	}
	return false
}

func (r *AutoRegister) remove(ctx context.Context, name string, seen *metav1.ObjectMeta) error {
	_, err := r.services.DeleteAdmitted(ctx, "", name, &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has changed meanwhile, and is compared again
	}
	return err
}

// readServices decodes the APIServices that have changed.
func (r *AutoRegister) readServices(snapshot watchcache.Snapshot) {
	before := r.registered
	r.registered = make(map[string]registered, len(before))
	for o := range snapshot.Range("", "") {
		next := before[o.Key]
		if next.of != o {
			next = registered{of: o}
			if err := json.Unmarshal(o.JSON(), &next.read); err != nil {
				r.log.Error("an APIService cannot be read and is left as it is", "name", o.Key, "error", err)
			}
		}
		r.registered[o.Key] = next
	}
}

// wanted returns the versions that the definitions have served, by the names of their APIServices.
func (r *AutoRegister) wanted(snapshot watchcache.Snapshot) map[string]schema.GroupVersion {
	before, wanted := r.defined, map[string]schema.GroupVersion{}
	r.defined = make(map[string]defined, len(before))
	for o := range snapshot.Range("", "") {
		next := before[o.Key]
		if next.of != o {
			next = defined{of: o, versions: servedVersions(o)}
		}
		r.defined[o.Key] = next
		for name, gv := range next.versions {
			if r.builtin[name] == nil {
				wanted[name] = gv
			}
		}
	}
	return wanted
}

// servedVersions returns the versions that a definition has served; none if it cannot be read,
// which its controller logs.
func servedVersions(o *watchcache.Object) map[string]schema.GroupVersion {
	var read struct {
		Spec struct {
			Group    string
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if json.Unmarshal(o.JSON(), &read) != nil {
		return nil
	}
	served := map[string]schema.GroupVersion{}
	for _, v := range read.Spec.Versions {
		if gv := (schema.GroupVersion{Group: read.Spec.Group, Version: v.Name}); v.Served {
			served[nameOf(gv)] = gv
		}
	}
	return served
}
