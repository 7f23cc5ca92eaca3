// Package subresource has the subresources of Kubernetes' kinds as typed calls:
// scale, eviction, binding, token and approval. The status is written by
// client.Resource.UpdateStatus and its like, and any other subresource by
// client.Resource.SubResource.
package subresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// GetScale reads how many replicas an object should have and has: of a
// Deployment, a ReplicaSet, a StatefulSet, or of a custom resource with a scale
// subresource.
func GetScale[T client.Object](ctx context.Context, r client.Resource[T], name string) (*autoscalingv1.Scale, error) {
	scale := &autoscalingv1.Scale{}
	if err := r.SubResource("scale").Get(ctx, name, scale, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	return scale, nil
}

// UpdateScale writes a scale that GetScale has read, and returns the new one. It
// is a conflict if the object was changed between.
func UpdateScale[T client.Object](ctx context.Context, r client.Resource[T], scale *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	written := scale.DeepCopy()
	if written == nil {
		return nil, errors.New("update scale: the scale is nil: read one with GetScale")
	}
	if err := r.SubResource("scale").Update(ctx, scale.Name, written, opts); err != nil {
		return nil, err
	}
	return written, nil
}

// SetReplicas sets how many replicas an object should have, whatever else is
// written to it at the same time, and returns its new scale.
func SetReplicas[T client.Object](ctx context.Context, r client.Resource[T], name string, replicas int32, opts metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	if replicas < 0 {
		return nil, fmt.Errorf("set replicas of %q: the number must not be negative: %d", name, replicas)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": replicas}})
	if err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{}
	if err := r.SubResource("scale").Patch(ctx, name, types.MergePatchType, patch, scale, opts); err != nil {
		return nil, err
	}
	return scale, nil
}

// Evict asks for a pod's deletion if its PodDisruptionBudget allows that now. If
// not, apierrors.IsTooManyRequests is true for the error: try again later. Options
// may hold a grace period, preconditions or a dry run.
func Evict(ctx context.Context, pods client.Resource[*corev1.Pod], name string, opts metav1.DeleteOptions) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: &opts}
	return pods.SubResource("eviction").Create(ctx, name, eviction, metav1.CreateOptions{DryRun: opts.DryRun})
}

// Bind assigns a pod to a node, as a scheduler does. It is a conflict if the pod
// has a node already, or if uid is not empty and not the pod's.
func Bind(ctx context.Context, pods client.Resource[*corev1.Pod], name string, uid types.UID, node string) error {
	return pods.SubResource("binding").Create(ctx, name, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

// CreateToken returns a new token of a service account, and when it expires.
// Spec says for whom it is and for how long; the server has defaults for both.
func CreateToken(ctx context.Context, serviceAccounts client.Resource[*corev1.ServiceAccount], name string, spec authenticationv1.TokenRequestSpec) (authenticationv1.TokenRequestStatus, error) {
	request := &authenticationv1.TokenRequest{Spec: spec}
	if err := serviceAccounts.SubResource("token").Create(ctx, name, request, metav1.CreateOptions{}); err != nil {
		return authenticationv1.TokenRequestStatus{}, err
	}
	if request.Status.Token == "" {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("create a token of service account %q: the server's answer has none", name)
	}
	return request.Status, nil
}

// UpdateApproval writes the conditions that approve or deny a certificate
// signing request.
func UpdateApproval(ctx context.Context, requests client.Resource[*certificatesv1.CertificateSigningRequest], request *certificatesv1.CertificateSigningRequest,
	opts metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	written := request.DeepCopy()
	if written == nil {
		return nil, errors.New("update approval: the certificate signing request is nil")
	}
	if err := requests.SubResource("approval").Update(ctx, request.Name, written, opts); err != nil {
		return nil, err
	}
	return written, nil
}
