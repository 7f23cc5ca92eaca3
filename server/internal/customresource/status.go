package customresource

import (
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wanted is what the server has to say in a definition's status.
type wanted struct {
	names      apiextensionsv1.CustomResourceDefinitionNames
	conditions []apiextensionsv1.CustomResourceDefinitionCondition
}

// judge decides about names and conditions of a definition that has got some
// names already.
func judge(h *head, has apiextensionsv1.CustomResourceDefinitionNames, taken takenNames) wanted {
	names, accepted := acceptNames(h, has, taken)
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
		Reason: "NotAccepted", Message: "not all names are accepted",
	}
	if isTrue(h.Status.Conditions, apiextensionsv1.Established) || accepted.Status == apiextensionsv1.ConditionTrue {
		// Once established it stays so, whatever names it wants later.
		established.Status, established.Reason, established.Message = apiextensionsv1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted"
	}
	w := wanted{names: names, conditions: []apiextensionsv1.CustomResourceDefinitionCondition{accepted, established}}
	if approval, ok := judgeApproval(h); ok {
		w.conditions = append(w.conditions, approval)
	}
	return w
}

// judgeApproval says, for groups of Kubernetes itself, what the annotation
// api-approved.kubernetes.io says (KEP-1111).
func judgeApproval(h *head) (c apiextensionsv1.CustomResourceDefinitionCondition, ok bool) {
	if !apihelpers.IsProtectedCommunityGroup(h.Spec.Group) {
		return c, false
	}
	state, why := apihelpers.GetAPIApprovalState(h.Annotations)
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

// served says that the definition's resources are to be served.
func (w *wanted) served() bool { return isTrue(w.conditions, apiextensionsv1.Established) }

// saidBy reports whether a status says all this already.
func (w *wanted) saidBy(s *apiextensionsv1.CustomResourceDefinitionStatus) bool {
	if !equality.Semantic.DeepEqual(s.AcceptedNames, w.names) {
		return false
	}
	for i := range w.conditions {
		if !says(s.Conditions, &w.conditions[i]) {
			return false
		}
	}
	return true
}

func says(conditions []apiextensionsv1.CustomResourceDefinitionCondition, c *apiextensionsv1.CustomResourceDefinitionCondition) bool {
	for i := range conditions {
		if has := &conditions[i]; has.Type == c.Type {
			return has.Status == c.Status && has.Reason == c.Reason && has.Message == c.Message
		}
	}
	return false
}

// tell enters it into a definition.
func (w *wanted) tell(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) {
	crd.Status.AcceptedNames = w.names
	for _, c := range w.conditions {
		if !says(crd.Status.Conditions, &c) {
			c.LastTransitionTime = now
			if old := apihelpers.FindCRDCondition(crd, c.Type); old != nil && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			apihelpers.SetCRDCondition(crd, c)
		}
	}
}
