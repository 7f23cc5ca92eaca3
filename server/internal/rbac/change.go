package rbac

import (
	"context"
	"fmt"
	"unsafe"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// definition is what a role or a binding says. It is immutable.
type definition struct {
	rules    []rbacv1.PolicyRule // of a role
	role     objectKey           // of a binding
	subjects []rbacv1.Subject    // of a binding; distinct
}

// change is one write of a role or a binding. Roles and ClusterRoles differ in their keys,
// and so do the bindings.
type change struct {
	revision      storage.Revision
	binding       bool
	key           objectKey
	before, after *definition // nil: it did not exist, or does not any more
}

// bytes is about how much memory a change takes. What it replaces counts as well, although
// the change before it often has the same: that one may have been dropped.
func (c *change) bytes() int {
	return int(unsafe.Sizeof(*c)) + c.before.bytes() + c.after.bytes()
}

// with returns the change as it is for some subjects of the binding that it leaves.
func (c *change) with(subjects []rbacv1.Subject) change {
	part := change{revision: c.revision, binding: true, key: c.key}
	if len(subjects) > 0 {
		part.after = &definition{role: c.after.role, subjects: subjects}
	}
	return part
}

func (d *definition) bytes() int {
	if d == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*d)) + len(d.subjects)*int(unsafe.Sizeof(rbacv1.Subject{}))
	for i := range d.subjects {
		s := &d.subjects[i]
		n += len(s.Kind) + len(s.APIGroup) + len(s.Name) + len(s.Namespace)
	}
	for i := range d.rules {
		r := &d.rules[i]
		n += int(unsafe.Sizeof(*r))
		for _, list := range [...][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
			for _, s := range list {
				n += int(unsafe.Sizeof(s)) + len(s)
			}
		}
	}
	return n
}

// define decodes a role or a binding.
func define(ctx context.Context, r registry.Registry, o *watchcache.Object) (d definition, err error) {
	object, err := registry.DecodeAs[resource.Object](ctx, r, o)
	if err != nil {
		return d, err
	}
	switch v := object.(type) {
	case *rbacv1.ClusterRole:
		d.rules = v.Rules
	case *rbacv1.Role:
		d.rules = v.Rules
	case *rbacv1.ClusterRoleBinding:
		d.role, d.subjects = roleOf(v.RoleRef, ""), distinct(v.Subjects, "")
	case *rbacv1.RoleBinding:
		d.role, d.subjects = roleOf(v.RoleRef, o.Attributes.Namespace), distinct(v.Subjects, o.Attributes.Namespace)
	default:
		return d, fmt.Errorf("%T is neither a role nor a binding", object)
	}
	return d, nil
}

// find returns what a role or a binding says now; nil if it does not exist.
func (p *policy) find(binding bool, key objectKey) *definition {
	if binding {
		if b := p.bindings[key]; b != nil {
			return &definition{role: b.role.key, subjects: b.subjects}
		}
		return nil
	}
	if r := p.roles[key]; r != nil && r.compiled != nil {
		return &definition{rules: r.rules}
	}
	return nil
}

// set makes a role or a binding say something else; nil removes it.
func (p *policy) set(binding bool, key objectKey, d *definition) {
	switch {
	case binding && d == nil:
		p.removeBinding(key)
	case binding:
		p.bindDistinct(key, d.role, d.subjects)
	case d == nil:
		p.removeRole(key)
	default:
		p.setRole(key, d.rules)
	}
}
