package podspec

import "k8s.io/apimachinery/pkg/util/validation/field"

// union checks the members of a struct of pointers, of which one has to be set, in
// kube-apiserver's order: the first that is set is checked, any other is refused.
type union struct {
	path *field.Path
	set  bool // one of them is
	errs field.ErrorList
}

// member checks a member by its rule.
func member[T any](u *union, name string, value *T, rule func(*field.Path, *T) field.ErrorList) {
	memberAt(u, name, name, value, rule)
}

// memberAt is member for one whose contents kube-apiserver calls otherwise.
func memberAt[T any](u *union, name, contents string, value *T, rule func(*field.Path, *T) field.ErrorList) {
	switch {
	case value == nil:
	case u.set:
		u.errs = append(u.errs, field.Forbidden(u.path.Child(name), "may not specify more than 1 volume type"))
	default:
		u.set = true
		u.errs = append(u.errs, rule(u.path.Child(contents), value)...)
	}
}

// done returns what is wrong with the union.
func (u *union) done() field.ErrorList {
	if !u.set {
		u.errs = append(u.errs, field.Required(u.path, "must specify a volume type"))
	}
	return u.errs
}
