package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func namespaceRules() define.Rules[*corev1.Namespace] {
	return define.Rules[*corev1.Namespace]{
		Default:          defaultNamespace,
		PrepareForCreate: prepareNamespaceForCreate,
		PrepareForUpdate: func(ns, old *corev1.Namespace) {
			// Only the finalize subresource changes the finalizers.
			ns.Spec.Finalizers = slices.Clone(old.Spec.Finalizers)
		},
		PrepareForStatusUpdate: func(ns, old *corev1.Namespace) {
			ns.Spec.Finalizers = slices.Clone(old.Spec.Finalizers)
		},
		Validate:            validateNamespace,
		ValidateStatus:      validateNamespaceStatus,
		ValidateSubresource: validateNamespaceFinalize,
		FirstFinalizers:     finalizersOfDeletion,
	}
}

// finalizersOfDeletion: a namespace whose dependents are not to be orphaned waits for them, unlike
// objects of other kinds.
func finalizersOfDeletion(ns *corev1.Namespace, opts *metav1.DeleteOptions) []string {
	var orphan, foreground bool
	switch policy := opts.PropagationPolicy; {
	case opts.OrphanDependents != nil:
		orphan, foreground = *opts.OrphanDependents, !*opts.OrphanDependents
	case policy != nil:
		orphan, foreground = *policy == metav1.DeletePropagationOrphan, *policy == metav1.DeletePropagationForeground
	default:
		return ns.Finalizers
	}
	left := slices.DeleteFunc(slices.Clone(ns.Finalizers), func(name string) bool {
		return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
	})
	if orphan {
		left = append(left, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		left = append(left, metav1.FinalizerDeleteDependents)
	}
	return left
}

// defaultNamespace puts the namespace's name among its labels, where
// selectors find it (KEP-2161).
func defaultNamespace(ns *corev1.Namespace) {
	define.SetDefault(&ns.Status.Phase, corev1.NamespaceActive)
	if ns.Name == "" {
		return
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

func prepareNamespaceForCreate(ns *corev1.Namespace) {
	defaultNamespace(ns) // the name may have been generated since
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

// validateNamespace names the list of finalizers in its errors, and not which of them is wrong, as
// kube-apiserver does.
func validateNamespace(ns *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	for _, finalizer := range ns.Spec.Finalizers {
		errs = append(errs, validateFinalizer(namespaceFinalizers, finalizer)...)
	}
	return errs
}

// validateNamespaceFinalize checks what the finalize subresource, the only one, makes of the
// finalizers.
func validateNamespaceFinalize(_ string, ns, _ *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	for i, finalizer := range ns.Spec.Finalizers {
		errs = append(errs, validateFinalizer(namespaceFinalizers.Index(i), finalizer)...)
	}
	return errs
}

var namespaceFinalizers = validate.SpecPath.Child("finalizers")

func validateFinalizer(at *field.Path, finalizer corev1.FinalizerName) field.ErrorList {
	name := string(finalizer)
	errs := validate.Invalid(at, name, validation.IsQualifiedName(name))
	if !strings.Contains(name, "/") && finalizer != corev1.FinalizerKubernetes && name != metav1.FinalizerOrphanDependents && name != metav1.FinalizerDeleteDependents {
		errs = append(errs, field.Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified"))
	}
	return errs
}

// validateNamespaceStatus: a namespace is Terminating exactly while it is being deleted. The path
// is spelled as in kube-apiserver.
func validateNamespaceStatus(ns, _ *corev1.Namespace) field.ErrorList {
	at := field.NewPath("status", "Phase")
	switch phase := ns.Status.Phase; {
	case ns.DeletionTimestamp.IsZero() && phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(at, phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case !ns.DeletionTimestamp.IsZero() && phase != corev1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(at, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}
