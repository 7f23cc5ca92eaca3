package customresource

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// desiredStatus is what a definition's status should say.
type desiredStatus struct {
	names      apiextensionsv1.CustomResourceDefinitionNames
	conditions []apiextensionsv1.CustomResourceDefinitionCondition
	absent     []apiextensionsv1.CustomResourceDefinitionConditionType // conditions that it should not have
}

// decideStatus decides the names and conditions of a definition. has are the names
// that it has got before.
func decideStatus(crd *crdMeta, has apiextensionsv1.CustomResourceDefinitionNames, taken takenNames) desiredStatus {
	names, accepted := acceptNames(crd, has, taken)
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
		Reason: "NotAccepted", Message: "not all names are accepted",
	}
	switch {
	case !isTrue(crd.Status.Conditions, apiextensionsv1.Established) && accepted.Status != apiextensionsv1.ConditionTrue:
	case !isTrue(crd.Status.Conditions, apiextensionsv1.Established) && hasInvalidCABundle(crd):
		established.Reason, established.Message = "InvalidCABundle", "The conversion webhook CABundle is invalid"
	default:
		// An established definition stays so, whatever names it wants later.
		established.Status, established.Reason, established.Message = apiextensionsv1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted"
	}
	w := desiredStatus{names: names, conditions: []apiextensionsv1.CustomResourceDefinitionCondition{accepted, established}}
	if violated, ok := structuralCondition(crd); ok {
		w.conditions = append(w.conditions, violated)
	} else {
		w.absent = append(w.absent, apiextensionsv1.NonStructuralSchema)
	}
	if approval, ok := approvalCondition(crd); ok {
		w.conditions = append(w.conditions, approval)
	}
	return w
}

// approvalCondition returns, for groups of Kubernetes itself, the condition that
// follows from the annotation api-approved.kubernetes.io (KEP-1111).
func approvalCondition(crd *crdMeta) (c apiextensionsv1.CustomResourceDefinitionCondition, ok bool) {
	if !apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		return c, false
	}
	state, why := apihelpers.GetAPIApprovalState(crd.Annotations)
	c = apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionFalse, Message: why,
	}
	switch state {
	case apihelpers.APIApproved:
		c.Status, c.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalMissing:
		c.Reason = "MissingAnnotation"
	case apihelpers.APIApprovalBypassed:
		c.Reason = "UnapprovedAnnotation"
	default:
		c.Reason = "InvalidAnnotation"
	}
	return c, true
}

func isTrue(conditions []apiextensionsv1.CustomResourceDefinitionCondition, kind apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	for i := range conditions {
		if conditions[i].Type == kind {
			return conditions[i].Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// served reports whether the definition's resources are to be served.
func (w *desiredStatus) served() bool { return isTrue(w.conditions, apiextensionsv1.Established) }

// isWrittenIn reports whether a status says all of this already.
func (w *desiredStatus) isWrittenIn(s *apiextensionsv1.CustomResourceDefinitionStatus) bool {
	if !equality.Semantic.DeepEqual(s.AcceptedNames, w.names) {
		return false
	}
	for i := range w.conditions {
		if !hasCondition(s.Conditions, &w.conditions[i]) {
			return false
		}
	}
	return !slices.ContainsFunc(s.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return slices.Contains(w.absent, c.Type)
	})
}

func hasCondition(conditions []apiextensionsv1.CustomResourceDefinitionCondition, c *apiextensionsv1.CustomResourceDefinitionCondition) bool {
	for i := range conditions {
		if has := &conditions[i]; has.Type == c.Type {
			return has.Status == c.Status && has.Reason == c.Reason && has.Message == c.Message
		}
	}
	return false
}

// writeTo writes the status into a definition.
func (w *desiredStatus) writeTo(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) {
	crd.Status.AcceptedNames = w.names
	for _, kind := range w.absent {
		apihelpers.RemoveCRDCondition(crd, kind)
	}
	for _, c := range w.conditions {
		if !hasCondition(crd.Status.Conditions, &c) {
			c.LastTransitionTime = now
			if old := apihelpers.FindCRDCondition(crd, c.Type); old != nil && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			apihelpers.SetCRDCondition(crd, c)
		}
	}
}
