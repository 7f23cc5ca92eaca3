package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

func setClusterRole(ctx context.Context, p *policy, r registry.Registry, o *watchcache.Object) error {
	role, err := registry.DecodeAs[*rbacv1.ClusterRole](ctx, r, o)
	if err != nil {
		return err
	}
	p.setRole(keyOfObject(o), role.Rules)
	return nil
}

func setRole(ctx context.Context, p *policy, r registry.Registry, o *watchcache.Object) error {
	role, err := registry.DecodeAs[*rbacv1.Role](ctx, r, o)
	if err != nil {
		return err
	}
	p.setRole(keyOfObject(o), role.Rules)
	return nil
}

func setClusterRoleBinding(ctx context.Context, p *policy, r registry.Registry, o *watchcache.Object) error {
	binding, err := registry.DecodeAs[*rbacv1.ClusterRoleBinding](ctx, r, o)
	if err != nil {
		return err
	}
	p.setBinding(keyOfObject(o), binding.RoleRef, binding.Subjects)
	return nil
}

func setRoleBinding(ctx context.Context, p *policy, r registry.Registry, o *watchcache.Object) error {
	binding, err := registry.DecodeAs[*rbacv1.RoleBinding](ctx, r, o)
	if err != nil {
		return err
	}
	p.setBinding(keyOfObject(o), binding.RoleRef, binding.Subjects)
	return nil
}
