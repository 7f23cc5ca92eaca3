package customresource

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// takenNames are the names in a group that were accepted for other definitions, or
// belong to built-in kinds.
type takenNames struct {
	resources, kinds sets.Set[string]
}

func (t *takenNames) take(n apiextensionsv1.CustomResourceDefinitionNames) {
	t.resources.Insert(n.Plural, n.Singular)
	t.resources.Insert(n.ShortNames...)
	t.kinds.Insert(n.Kind, n.ListKind)
}

// acceptNames decides which of its wanted names a definition gets. It keeps a name
// until it can have the wanted one instead. The condition says why a name is
// refused.
func acceptNames(crd *crdMeta, has apiextensionsv1.CustomResourceDefinitionNames, taken takenNames) (apiextensionsv1.CustomResourceDefinitionNames, apiextensionsv1.CustomResourceDefinitionCondition) {
	wants, gets := crd.Spec.Names, has
	condition := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue,
		Reason: "NoConflicts", Message: "no conflicts found",
	}
	refuse := func(reason, message string) {
		condition.Status, condition.Reason, condition.Message = apiextensionsv1.ConditionFalse, reason, message
	}
	one := func(wanted, had string, taken sets.Set[string], reason string, get *string) {
		if wanted != had && taken.Has(wanted) {
			refuse(reason, fmt.Sprintf("%q is already in use", wanted))
			return
		}
		*get = wanted
	}
	one(wants.Plural, has.Plural, taken.resources, "PluralConflict", &gets.Plural)
	one(wants.Singular, has.Singular, taken.resources, "SingularConflict", &gets.Singular)
	var refused []string
	for _, short := range wants.ShortNames {
		if !slices.Contains(has.ShortNames, short) && taken.resources.Has(short) {
			refused = append(refused, fmt.Sprintf("%q is already in use", short))
		}
	}
	switch len(refused) {
	case 0:
		gets.ShortNames = wants.ShortNames
	case 1:
		refuse("ShortNamesConflict", refused[0])
	default:
		refuse("ShortNamesConflict", "["+strings.Join(refused, ", ")+"]")
	}
	one(wants.Kind, has.Kind, taken.kinds, "KindConflict", &gets.Kind)
	one(wants.ListKind, has.ListKind, taken.kinds, "ListKindConflict", &gets.ListKind)
	gets.Categories = wants.Categories
	return gets, condition
}
