package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// subjectMember is one of the members of a subject, of which its kind asks for one.
type subjectMember struct {
	kind  flowcontrolv1.SubjectKind
	name  string
	set   bool
	check func(path *field.Path) field.ErrorList
}

// validateSubject checks the member that the kind of the subject names, and that it is the only one.
func validateSubject(path *field.Path, subject *flowcontrolv1.Subject) field.ErrorList {
	members := []subjectMember{
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", subject.ServiceAccount != nil, func(path *field.Path) field.ErrorList {
			return validateServiceAccount(path, subject.ServiceAccount)
		}},
		{flowcontrolv1.SubjectKindUser, "user", subject.User != nil, func(path *field.Path) field.ErrorList {
			return validate.Required(path.Child("name"), subject.User.Name)
		}},
		{flowcontrolv1.SubjectKindGroup, "group", subject.Group != nil, func(path *field.Path) field.ErrorList {
			return validate.Required(path.Child("name"), subject.Group.Name)
		}},
	}
	if errs := validate.Supported(path.Child("kind"), subject.Kind,
		flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser); len(errs) > 0 {
		return errs
	}
	var own, others field.ErrorList
	for _, m := range members {
		at := path.Child(m.name)
		switch asked := m.kind == subject.Kind; {
		case asked && m.set:
			own = m.check(at)
		case asked:
			own = field.ErrorList{field.Required(at, m.name+" is required when subject kind is '"+string(m.kind)+"'")}
		case m.set:
			others = append(others, field.Forbidden(at, m.name+" is forbidden when subject kind is not '"+string(m.kind)+"'"))
		}
	}
	return append(own, others...)
}

func validateServiceAccount(path *field.Path, account *flowcontrolv1.ServiceAccountSubject) field.ErrorList {
	var errs field.ErrorList
	switch name := path.Child("name"); account.Name {
	case "":
		errs = append(errs, field.Required(name, ""))
	case flowcontrolv1.NameAll:
	default:
		errs = append(errs, validate.Invalid(name, account.Name, apivalidation.ValidateServiceAccountName(account.Name, false))...)
	}
	if account.Namespace == "" {
		return append(errs, field.Required(path.Child("namespace"), "must specify namespace for service account"))
	}
	return append(errs, validate.Invalid(path.Child("namespace"), account.Namespace, apivalidation.ValidateNamespaceName(account.Namespace, false))...)
}
