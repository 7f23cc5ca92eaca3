package expressions

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	admissionapi "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/levelwire/levelwire/server/internal/admission/rules"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// Object returns an object as expressions see it. Go types are read by reflection where
// an expression looks; nothing is converted.
func Object(obj runtime.Object) ref.Val {
	switch o := obj.(type) {
	case nil:
		return nil
	case *unstructured.Unstructured:
		return types.DefaultTypeAdapter.NativeToValue(o.Object)
	}
	if v := reflect.ValueOf(obj); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return common.SchemalessTypedToVal(obj)
}

// Named returns an object that says its kind: obj itself, or a copy of it. obj may be nil.
func Named(obj resource.Object, kind schema.GroupVersionKind) resource.Object {
	if obj != nil && obj.GetObjectKind().GroupVersionKind() != kind {
		obj = obj.DeepCopyObject().(resource.Object)
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	return obj
}

// Request returns the variable request, for an expression that sees the objects as of shown.
func Request(q *registry.Request, asked *rules.Request, shown rules.Endpoint, u auth.User) ref.Val {
	kind, resource := metav1.GroupVersionKind(asked.Endpoint.Kind), metav1.GroupVersionResource(asked.Endpoint.Resource)
	return common.SchemalessTypedToVal(&admissionapi.AdmissionRequest{
		Kind: metav1.GroupVersionKind(shown.Kind), Resource: metav1.GroupVersionResource(shown.Resource), SubResource: q.Subresource,
		RequestKind: &kind, RequestResource: &resource, RequestSubResource: q.Subresource,
		Name: q.Name, Namespace: asked.Namespace, Operation: admissionapi.Operation(asked.Operation),
		UserInfo: UserInfo(u), DryRun: &q.DryRun, Options: runtime.RawExtension{Object: q.Options()},
	})
}

// UserInfo returns a user as AdmissionRequests name it.
func UserInfo(u auth.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	if len(u.Extra) > 0 {
		info.Extra = make(map[string]authenticationv1.ExtraValue, len(u.Extra))
		for key, values := range u.Extra {
			info.Extra[key] = values
		}
	}
	return info
}

// Namespace returns the variable namespaceObject: without managed fields and owners.
func Namespace(n *corev1.Namespace) ref.Val {
	return common.SchemalessTypedToVal(&corev1.Namespace{Status: n.Status, Spec: n.Spec, ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, GenerateName: n.GenerateName, Namespace: n.Namespace, UID: n.UID, ResourceVersion: n.ResourceVersion, Generation: n.Generation,
		CreationTimestamp: n.CreationTimestamp, DeletionTimestamp: n.DeletionTimestamp, DeletionGracePeriodSeconds: n.DeletionGracePeriodSeconds,
		Labels: n.Labels, Annotations: n.Annotations, Finalizers: n.Finalizers,
	}})
}

// SetAuthorizer sets the variables authorizer and authorizer.requestResource of input. a is
// that of one request.
func SetAuthorizer(input *cel.Input, a *Authorizer, q *registry.Request, namespace string, u auth.User) {
	user := userInfo(u)
	input.Authorizer = library.NewAuthorizerVal(user, a)
	input.RequestResource = library.NewResourceAuthorizerVal(user, a, requestResource{q, namespace})
}

// requestResource is what authorizer.requestResource asks about.
type requestResource struct {
	request   *registry.Request
	namespace string
}

// GetName implements library.Resource.
func (r requestResource) GetName() string { return r.request.Name }

// GetNamespace implements library.Resource.
func (r requestResource) GetNamespace() string { return r.namespace }

// GetSubresource implements library.Resource.
func (r requestResource) GetSubresource() string { return r.request.Subresource }

// GetResource implements library.Resource.
func (r requestResource) GetResource() schema.GroupVersionResource {
	return r.request.Resource.GroupVersionResource()
}
