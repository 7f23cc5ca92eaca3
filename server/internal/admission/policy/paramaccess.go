package policy

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// all stands for every name, namespace or resource in what an authorizer is asked.
const all = "*"

// AuthorizeParams returns the hook that refuses a policy or a binding whose author may not
// read its parameters. Messages and audit annotations show parameters, so that a policy
// would else read Secrets for its author. A policy needs the verb get on all objects of its
// paramKind, a binding on the objects that its paramRef names, as in kube-apiserver. An
// update that leaves both as they were needs neither.
func AuthorizeParams(set *registry.Set, authorizer auth.Authorizer) registry.Admission {
	a := paramAuthorizer{set, authorizer}
	return func(ctx context.Context, q *registry.Request) error {
		if q.Object == nil || q.Admitted || q.Resource.Group != admissionv1.GroupName {
			return nil
		}
		user, ok := auth.UserFrom(ctx)
		if !ok || user.In(auth.Masters) {
			return nil
		}
		if kind := paramKindOf(q.Object); kind != nil && !equality.Semantic.DeepEqual(kind, paramKindOf(q.Old)) {
			asked := a.resource(kind)
			asked.Namespace, asked.Name = all, all
			if !a.mayGet(ctx, user, asked) {
				return q.Forbidden(fmt.Errorf(`user %q must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`, user.Name, kind.Kind, kind.APIVersion))
			}
		}
		policy, ref := paramRefOf(q.Object)
		oldPolicy, oldRef := paramRefOf(q.Old)
		if ref == nil || policy == oldPolicy && equality.Semantic.DeepEqual(ref, oldRef) {
			return nil
		}
		asked, err := a.resourceOfPolicy(ctx, q, policy)
		if err != nil {
			return err
		}
		asked.Namespace, asked.Name = ref.Namespace, ref.Name
		if !a.mayGet(ctx, user, asked) {
			return q.Forbidden(fmt.Errorf(`user %q does not have "get" permission on the object referenced by paramRef`, user.Name))
		}
		return nil
	}
}

type paramAuthorizer struct {
	set        *registry.Set
	authorizer auth.Authorizer
}

func (a paramAuthorizer) mayGet(ctx context.Context, user auth.User, asked auth.Attributes) bool {
	asked.User, asked.Verb = user, "get"
	decision, _, _ := a.authorizer.Authorize(ctx, asked) // the decision is valid despite an error
	return decision == auth.Allow
}

// resource returns what has the parameters: every resource if the kind is not served.
func (a paramAuthorizer) resource(kind *admissionv1.ParamKind) auth.Attributes {
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return auth.Attributes{Group: all, Version: all, Resource: all}
	}
	asked := auth.Attributes{Group: gv.Group, Version: gv.Version, Resource: all}
	if res := resourceOf(a.set, gv.WithKind(kind.Kind)); res != nil {
		asked.Resource = res.Plural
	}
	return asked
}

// resourceOfPolicy is resource for the policy that a binding in q names. There may be no
// such policy yet.
func (a paramAuthorizer) resourceOfPolicy(ctx context.Context, q *registry.Request, name string) (auth.Attributes, error) {
	plural := "validatingadmissionpolicies"
	if _, ok := q.Object.(*admissionv1.MutatingAdmissionPolicyBinding); ok {
		plural = "mutatingadmissionpolicies"
	}
	everything := auth.Attributes{Group: all, Version: all, Resource: all}
	r, ok := a.set.Lookup(admissionv1.GroupName, "v1", plural)
	if !ok {
		return everything, nil
	}
	obj, err := r.Get(ctx, "", name)
	switch {
	case apierrors.IsNotFound(err):
		return everything, nil
	case err != nil:
		return everything, err
	}
	if kind := paramKindOf(obj); kind != nil {
		return a.resource(kind), nil
	}
	return everything, nil
}

// paramKindOf returns the paramKind of a policy; nil if there is none.
func paramKindOf(obj any) *admissionv1.ParamKind {
	switch p := obj.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return p.Spec.ParamKind
	case *admissionv1.MutatingAdmissionPolicy:
		return p.Spec.ParamKind
	}
	return nil
}

// paramRefOf returns the policy and the paramRef of a binding; nil if there is none.
func paramRefOf(obj any) (policy string, ref *admissionv1.ParamRef) {
	switch b := obj.(type) {
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return b.Spec.PolicyName, b.Spec.ParamRef
	case *admissionv1.MutatingAdmissionPolicyBinding:
		return b.Spec.PolicyName, b.Spec.ParamRef
	}
	return "", nil
}
