package relay

import (
	"context"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// roleResources are what RBAC decides by.
var roleResources = []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"}

const (
	// rolesPause is the least time between two reports of changes of roles and bindings.
	rolesPause = 200 * time.Millisecond
	// rolesSettle is after how long without a change the last one is reported once more. An
	// upstream may decide for a moment by what was before a change that it has sent:
	// kube-apiserver has informers for that, and of several servers another one may be asked.
	rolesSettle = 500 * time.Millisecond
	// retryRefused is after how long the upstream is asked again for roles and bindings that it has
	// refused, retryUnanswered the same if it has not answered. retryWatch is the same if it
	// shows them, but refuses to have them watched: each attempt is logged.
	retryRefused, retryUnanswered, retryWatch = time.Minute, 3 * time.Second, 10 * time.Minute
)

// FollowRoles calls changed after roles or bindings of the upstream have changed, once for
// changes that come together, until ctx ends. It asks for the metadata of the objects only, and
// keeps nothing. The caches are no use for that: a shard's have a part of the objects.
func (r *Relay) FollowRoles(ctx context.Context, changed func()) {
	var wait sync.WaitGroup
	defer wait.Wait()
	changes := make(roleChanges, 1)
	for _, name := range roleResources {
		wait.Go(func() { r.followRoles(ctx, name, changes) })
	}
	changes.report(ctx, changed)
}

// followRoles reports the changes of one resource until ctx ends.
func (r *Relay) followRoles(ctx context.Context, name string, changes roleChanges) {
	select {
	case <-r.contact.made:
	case <-ctx.Done():
	}
	var refusals refusals
	for ctx.Err() == nil {
		wait := retryUnanswered
		listed, shown, refused := r.followRolesOnce(ctx, name, changes, &refusals)
		switch {
		case refused != nil && listed && !shown:
			wait = retryWatch
		case refused != nil:
			wait = retryRefused
		}
		if refused != nil && shown && ctx.Err() == nil {
			r.opts.Logger.Warn("the upstream does not show the relay its roles and bindings any more: an open watch whose right is withdrawn may go on for ten minutes",
				"resource", name+"."+rbacv1.GroupName, "error", refused)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// followRolesOnce is followRoles until the upstream refuses. It returns whether that has answered a
// list, and has shown changes before, and the refusal; nil, if the upstream is to be asked again soon.
// What is there at first is not listed: that is known when a decision is asked for.
func (r *Relay) followRolesOnce(ctx context.Context, name string, changes roleChanges, refusals *refusals) (listed, shown bool, refused error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gvr := schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: name}
	resource := client.Metadata(r.client, gvr)
	version, err := versionOf(ctx, resource)
	switch {
	case err == nil:
		refusals.end()
	case refusals.isNotShown(ctx, r, gvr.GroupResource(), err):
		return false, false, err
	default:
		return false, false, nil
	}
	_ = changes.note() // those that were missed
	refl, err := reflector.New(reflector.Resource(resource, nil), reflector.Store[*metav1.PartialObjectMetadata](changes), reflector.Options{
		Name: name, Logger: r.opts.Logger, ResumeFrom: version, PagedList: r.opts.Deltas,
		Backoff: reflector.Backoff{Base: 200 * time.Millisecond, Max: retryUnanswered},
		OnError: func(_ string, err error) {
			if refusals.isNotShown(ctx, r, gvr.GroupResource(), err) {
				refused = err
				cancel()
			}
		},
		OnProgress: func(string) {
			shown = true
			refusals.end()
		},
	})
	if err == nil {
		_ = refl.Run(ctx) // ends when the upstream has refused: changes has no errors
	}
	return true, shown, refused
}

// versionOf returns the current version of a resource.
func versionOf(ctx context.Context, resource client.Resource[*metav1.PartialObjectMetadata]) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	list, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || list.ResourceVersion == "0" {
		return "", err
	}
	return list.ResourceVersion, nil
}

// roleChanges has a value while changes of roles or bindings have not been reported. It is the
// store of reflectors, and keeps no objects.
type roleChanges chan struct{}

// report calls changed after changes, until ctx ends.
func (c roleChanges) report(ctx context.Context, changed func()) {
	settled := time.NewTimer(rolesSettle)
	settled.Stop()
	defer settled.Stop()
	for {
		select {
		case <-c:
			settled.Reset(rolesSettle)
		case <-settled.C:
		case <-ctx.Done():
			return
		}
		changed()
		select {
		case <-time.After(rolesPause):
		case <-ctx.Done():
			return
		}
	}
}

func (c roleChanges) note() error {
	select {
	case c <- struct{}{}:
	default: // others have not been reported yet
	}
	return nil
}

// Add implements reflector.Store.
func (c roleChanges) Add(*metav1.PartialObjectMetadata) error { return c.note() }

// Update implements reflector.Store.
func (c roleChanges) Update(*metav1.PartialObjectMetadata) error { return c.note() }

// Delete implements reflector.Store.
func (c roleChanges) Delete(*metav1.PartialObjectMetadata) error { return c.note() }

// Replace implements reflector.Store.
func (c roleChanges) Replace([]*metav1.PartialObjectMetadata, string) error { return c.note() }
