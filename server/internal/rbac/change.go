package rbac

import (
	"context"
	"fmt"
	"strings"
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
	compiled *roleRules          // of a role: the rules, compiled when they are first asked
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
	return says(object, o.Attributes.Namespace)
}

// says returns what a role or a binding says. It shares memory with the object.
func says(object resource.Object, namespace string) (d definition, err error) {
	switch v := object.(type) {
	case *rbacv1.ClusterRole:
		d.rules, d.compiled = v.Rules, newRoleRules("", v.Rules)
	case *rbacv1.Role:
		d.rules, d.compiled = v.Rules, newRoleRules(namespace, v.Rules)
	case *rbacv1.ClusterRoleBinding:
		d.role, d.subjects = roleOf(v.RoleRef, ""), distinct(v.Subjects, "")
	case *rbacv1.RoleBinding:
		d.role, d.subjects = roleOf(v.RoleRef, namespace), distinct(v.Subjects, namespace)
	default:
		return d, fmt.Errorf("%T is neither a role nor a binding", object)
	}
	return d, nil
}

// uncompiled returns the definition without compiled rules, which can take a thousand times as much memory as the
// rules: a history of them would have to be short.
func (d *definition) uncompiled() *definition {
	if d == nil || d.compiled == nil {
		return d
	}
	return &definition{rules: d.rules}
}

// maxInterned is how many strings of a definition are looked for in it, so that they take memory once.
const maxInterned = 1000

// detach gives the definition, which nothing else has yet, strings of its own: those of an object are parts of its
// JSON, which would stay as long as one of them.
func (d *definition) detach() {
	known := map[string]string{}
	own := func(s *string) {
		if interned, ok := known[*s]; ok {
			*s = interned
			return
		}
		*s = strings.Clone(*s)
		if len(known) < maxInterned {
			known[*s] = *s
		}
	}
	own(&d.role.namespace)
	own(&d.role.name)
	for i := range d.subjects {
		s := &d.subjects[i]
		own(&s.Kind)
		own(&s.APIGroup)
		own(&s.Name)
		own(&s.Namespace)
	}
	for i := range d.rules {
		r := &d.rules[i]
		for _, list := range [...][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
			for i := range list {
				own(&list[i])
			}
		}
	}
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
		return &definition{rules: r.rules, compiled: r.compiled}
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
	case d.compiled == nil:
		p.setRole(key, d.rules)
	default:
		p.setRules(key, d.compiled)
	}
}
