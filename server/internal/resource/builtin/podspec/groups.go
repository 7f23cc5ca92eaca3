package podspec

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	tags "k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validateSchedulingGroup checks the group that a pod is scheduled with (KEP-4671). Such a pod is not
// evicted alone.
func validateSchedulingGroup(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	group := spec.SchedulingGroup
	if group == nil {
		return nil
	}
	var errs field.ErrorList
	at := path.Child("schedulingGroup")
	if name := group.PodGroupName; name == nil {
		errs = append(errs, field.Invalid(at.Child("podGroupName"), name, "must specify one of: `podGroupName`"))
	} else {
		errs = append(errs, validate.Invalid(at.Child("podGroupName"), *name, validation.IsDNS1123Subdomain(*name))...)
	}
	if len(spec.EvictionResponders) > 0 {
		errs = append(errs, field.Forbidden(at, "may not be set when evictionResponders is set"))
	}
	return errs
}

const (
	maxResponders        = 10
	maxResponderPriority = 100_000
	// reservedPriorities are for responders of Kubernetes itself, of which there are none yet.
	reservedPriorities = 1000
)

// tagsOfResponders checks those that respond to requests to evict a pod (KEP-4563), as the tags of
// the type say.
func tagsOfResponders(path *field.Path, responders []corev1.EvictionResponder) field.ErrorList {
	at := path.Child("evictionResponders")
	if n := len(responders); n > maxResponders {
		return field.ErrorList{field.TooMany(at, n, maxResponders)}
	}
	errs := tags.ValSliceUnique(context.Background(), operation.Operation{}, at, responders, nil,
		func(a, b *corev1.EvictionResponder) bool { return a.Name == b.Name })
	for i := range responders {
		errs = append(errs, tagsOfResponderName(at.Index(i).Child("name"), responders[i].Name)...)
		errs = append(errs, tagsOfResponderPriority(at.Index(i).Child("priority"), responders[i].Priority)...)
	}
	return errs
}

func tagsOfResponderName(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	domain, _, _ := strings.Cut(name, "/")
	domain = strings.TrimRight(strings.TrimSpace(strings.ToLower(domain)), ".")
	for _, reserved := range []string{"k8s.io", "kubernetes.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			errs = append(errs, field.Invalid(at, name, "domain names *.k8s.io, *.kubernetes.io are reserved"))
		}
	}
	return append(errs, tags.PrefixedLabelKey(context.Background(), operation.Operation{}, at, &name, nil)...)
}

func tagsOfResponderPriority(at *field.Path, priority *int32) field.ErrorList {
	switch {
	case priority == nil:
		return field.ErrorList{field.Required(at, "")}
	case *priority < 0:
		return field.ErrorList{field.Invalid(at, *priority, "must be greater than or equal to 0")}
	case *priority < reservedPriorities:
		return field.ErrorList{field.Invalid(at, *priority, fmt.Sprintf("priorities 0-%d are reserved for responders with *.k8s.io suffix", reservedPriorities-1))}
	case *priority > maxResponderPriority:
		return field.ErrorList{field.Invalid(at, *priority, fmt.Sprintf("must be less than or equal to %d", maxResponderPriority))}
	}
	return nil
}
