package registry

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry/objectmeta"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// CheckPreconditions compares the object with the preconditions of a DELETE. The refusal names the
// kind in place of the resource, as in Kubernetes.
func (r Registry) CheckPreconditions(name string, p *metav1.Preconditions, obj resource.Object) error {
	return r.checkPreconditions(name, p, obj, "")
}

// checkPreconditions is CheckPreconditions with a Strategy's words for the refusal; "": those of all kinds.
func (r Registry) checkPreconditions(name string, p *metav1.Preconditions, obj resource.Object, words string) error {
	if p == nil {
		return nil
	}
	failed := func(what, wanted, has, happened string) error {
		if words != "" {
			return r.conflict(name, fmt.Errorf("%s: %s in precondition: %s, %[2]s in object meta: %[4]s", words, what, wanted, has))
		}
		byKind := schema.GroupResource{Group: r.stored.Group, Resource: r.stored.Kind} // an Event is one of the core group, whichever it is asked for
		return apierrors.NewConflict(byKind, name, fmt.Errorf(
			"the %s in the precondition (%s) does not match the %[1]s in record (%[3]s). The object might have been %[4]s", what, wanted, has, happened))
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return failed("UID", string(*p.UID), string(obj.GetUID()), "deleted and then recreated")
	}
	if version := obj.GetResourceVersion(); p.ResourceVersion != nil && *p.ResourceVersion != version {
		return failed("ResourceVersion", *p.ResourceVersion, version, "modified")
	}
	return nil
}

// checkNew refuses to create an object of which the client knows the uid. As in Kubernetes, the version
// that it has of the object does not matter; the answer to a dry run shows it.
func (u *update) checkNew(w *pendingWrite, obj resource.Object) error {
	version := obj.GetResourceVersion()
	switch uid := obj.GetUID(); {
	case uid != "" && w.endpoint.Ownership == OwnershipStated:
		return w.registry.conflict(w.name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	case uid != "":
		return w.registry.conflict(w.name, otherUID(uid, ""))
	case version != "" && version != "0" && !validVersion(version):
		return notVersion(version)
	}
	w.sentVersion = version
	obj.SetResourceVersion("")
	return nil
}

// otherUID refuses an update that names another object than there is.
func otherUID(wanted, has types.UID) error {
	//nolint:revive,staticcheck // clients know this text, capital letter included
	return fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", wanted, has)
}

func notVersion(version string) error {
	return status.BadRequest("metadata.resourceVersion %q is not a version: send the one that was read", version)
}

// checkVersion compares uid and resourceVersion with those of the current state,
// and gives obj the version that it replaces.
func (u *update) checkVersion(w *pendingWrite, obj resource.Object) error {
	// A patch that changes the uid is refused by validation, as in Kubernetes.
	if uid := obj.GetUID(); !w.patches() && uid != "" && uid != w.current.object.GetUID() {
		return w.registry.conflict(w.name, otherUID(uid, w.current.object.GetUID()))
	}
	current := formatRevision(w.current.revision)
	switch version := obj.GetResourceVersion(); {
	case version == current:
	case version == "" || version == "0":
		if !u.unconditional && !w.registry.res.Strategy.UnconditionalUpdate {
			gr := w.registry.res.GroupResource() // which Kubernetes names here in place of the kind
			return apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: gr.Resource}, w.name, field.ErrorList{
				field.Invalid(objectmeta.Path.Child("resourceVersion"), 0, "must be specified for an update"),
			})
		}
		obj.SetResourceVersion(current)
	case !validVersion(version):
		return notVersion(version)
	default:
		return w.registry.conflict(w.name, errModified)
	}
	return nil
}

// validVersion reports whether version is a decimal number without leading zero.
func validVersion(version string) bool {
	for i := range len(version) {
		if version[i] < '0' || version[i] > '9' {
			return false
		}
	}
	return version != "" && version[0] != '0'
}
