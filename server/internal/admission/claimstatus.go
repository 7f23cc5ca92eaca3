package admission

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// claimStatusRights asks for rights on parts of the status of ResourceClaims, beside the one to write the status: who
// reports about the devices of one driver need not be trusted to bind claims.
//
// Source: the package k8s.io/api/resource/v1: SubresourceBinding, SubresourceDriver
type claimStatusRights struct{ authorizer auth.Authorizer }

// ClaimStatusRights returns the check. It is no plugin that can be disabled: kube-apiserver has it in its validation.
func ClaimStatusRights(authorizer auth.Authorizer) registry.Check {
	return claimStatusRights{authorizer}.check
}

var claimStatusPath = field.NewPath("status")

func (c claimStatusRights) check(ctx context.Context, q *registry.Request) field.ErrorList {
	claim, ok := q.Object.(*resourcev1.ResourceClaim)
	old, replaces := q.Old.(*resourcev1.ResourceClaim)
	user, known := auth.UserFrom(ctx) // the server's own writes have none
	if !ok || !replaces || !known {
		return nil
	}
	verb := "update"
	if q.Patches() {
		verb = "patch"
	}
	asked := auth.Attributes{User: user, Verb: verb, Group: q.Resource.Group, Version: q.Resource.Version, Resource: q.Resource.Plural}
	errs := c.checkBinding(ctx, asked, &claim.Status, &old.Status)
	if claim.Status.Allocation == nil { // reports go with the allocation, whoever takes that away
		return errs
	}
	asked.Namespace = q.Namespace
	return append(errs, c.checkReports(ctx, asked, &claim.Status, &old.Status)...)
}

// checkBinding refuses another allocation or reservation to who may not bind claims, in any namespace.
func (c claimStatusRights) checkBinding(ctx context.Context, asked auth.Attributes, status, old *resourcev1.ResourceClaimStatus) field.ErrorList {
	if equality.Semantic.DeepEqual(status.Allocation, old.Allocation) && equality.Semantic.DeepEqual(status.ReservedFor, old.ReservedFor) {
		return nil
	}
	asked.Subresource = resourcev1.SubresourceBinding
	if err := c.ask(ctx, asked); err != nil {
		return field.ErrorList{field.Forbidden(claimStatusPath.Child("allocation"), fmt.Sprintf(
			`changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="%s" permission: %s`, asked.Verb, err))}
	}
	return nil
}

// checkReports refuses other reports about the devices of drivers for which the user may not report: from the node that
// the claim is allocated on, or from anywhere.
func (c claimStatusRights) checkReports(ctx context.Context, asked auth.Attributes, status, old *resourcev1.ResourceClaimStatus) field.ErrorList {
	verbs := []string{resourcev1.VerbPrefixArbitraryNode + asked.Verb}
	if runsOn(asked.User, allocatedNode(status.Allocation)) {
		verbs = []string{resourcev1.VerbPrefixAssociatedNode + asked.Verb, verbs[0]}
	}
	var errs field.ErrorList
	for _, driver := range sets.List(reportingDrivers(status.Devices, old.Devices)) {
		asked.Subresource, asked.Name = resourcev1.SubresourceDriver, driver
		if err := c.askAny(ctx, asked, verbs); err != nil {
			errs = append(errs, field.Forbidden(claimStatusPath.Child("devices"), fmt.Sprintf(
				`changing status.devices requires resource="resourceclaims/driver", verb="%s" permission: %s`, verbs, err)))
		}
	}
	return errs
}

// askAny returns nil if one of several verbs is allowed, and else why the first is not.
func (c claimStatusRights) askAny(ctx context.Context, asked auth.Attributes, verbs []string) error {
	var first error
	for _, asked.Verb = range verbs {
		err := c.ask(ctx, asked)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// ask returns nil if something is allowed, and else the 403 that kube-apiserver makes a part of its message.
func (c claimStatusRights) ask(ctx context.Context, asked auth.Attributes) error {
	decision, reason, err := c.authorizer.Authorize(ctx, asked)
	switch {
	case decision == auth.Allow: // whatever else could not be found out
		return nil
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: asked.Group, Resource: asked.Resource}, asked.Name, errors.New(asked.Refusal(reason)))
}

// reportingDrivers returns the drivers with reports that are new, changed or gone.
func reportingDrivers(reports, before []resourcev1.AllocatedDeviceStatus) sets.Set[string] {
	type key struct{ driver, pool, device, share string }
	keyOf := func(d *resourcev1.AllocatedDeviceStatus) key {
		k := key{d.Driver, d.Pool, d.Device, ""}
		if d.ShareID != nil {
			k.share = *d.ShareID
		}
		return k
	}
	left := map[key]*resourcev1.AllocatedDeviceStatus{}
	for i := range before {
		left[keyOf(&before[i])] = &before[i]
	}
	drivers := sets.Set[string]{}
	for i := range reports {
		report := &reports[i]
		old := left[keyOf(report)]
		if delete(left, keyOf(report)); old == nil || !equality.Semantic.DeepEqual(old, report) {
			drivers.Insert(report.Driver)
		}
	}
	for gone := range left {
		drivers.Insert(gone.driver)
	}
	return drivers
}

// allocatedNode returns the one node whose name an allocation selects, and nothing else; "" for every other one.
func allocatedNode(a *resourcev1.AllocationResult) string {
	if a == nil || a.NodeSelector == nil || len(a.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := a.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) != 0 || len(term.MatchFields) != 1 {
		return ""
	}
	if f := term.MatchFields[0]; f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
		return f.Values[0]
	}
	return ""
}

// extraNodeName is where the token of a service account says on which node its pod runs.
const extraNodeName = "authentication.kubernetes.io/node-name"

// runsOn reports whether a user is a service account with the token of a pod on a node.
func runsOn(user auth.User, node string) bool {
	_, _, ok := auth.SplitServiceAccount(user.Name)
	names := user.Extra[extraNodeName]
	return ok && len(names) == 1 && names[0] == node && len(validation.NameIsDNSSubdomain(node, false)) == 0
}
