package noderestriction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// verbRequestSigner is the verb that a node needs on a signer, as the resource, to request
// certificates of it that none of the pod's volumes names.
const verbRequestSigner = "request-serviceaccounts-podcertificate-signer"

// admitPodCertificateRequest refuses requests that are not for a pod of the node as it is now, and
// those to a signer that the pod has no use for: the signer relies on what the request says of
// the pod.
//
// What may come right later, after a kubelet or this server has seen the newest state, is no 403, so
// that the kubelet tries again.
func (p *Plugin) admitPodCertificateRequest(ctx context.Context, w *write) error {
	switch {
	case w.Operation != registry.Create:
		return w.forbid("unexpected operation %v", w.Operation)
	case w.Subresource != "":
		return w.forbid("unexpected subresource %v", w.Subresource)
	}
	request, ok := w.Object.(*certificatesv1.PodCertificateRequest)
	if !ok {
		return w.forbid("unexpected type %T", w.Object)
	}
	spec := &request.Spec
	if string(spec.NodeName) != w.node {
		return w.forbid("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", spec.NodeName, w.node)
	}
	node, err := find[*corev1.Node](ctx, p.set, "nodes", "", w.node)
	if err != nil { // what follows wraps no error, whose code would be the answer's: the kubelet has to try again
		return fmt.Errorf("while retrieving node %q named in the PodCertificateRequest: %s", w.node, err.Error())
	}
	of := w.Namespace + "/" + spec.PodName
	if node.UID != spec.NodeUID {
		return fmt.Errorf("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)", of, spec.NodeUID, node.UID)
	}
	pod, err := p.podOf(ctx, w, spec)
	if err != nil {
		return err
	}
	return p.checkPodSigner(ctx, w, pod, spec)
}

// podOf returns the pod that a request is for, if all that the request says of it is true.
func (p *Plugin) podOf(ctx context.Context, w *write, spec *certificatesv1.PodCertificateRequestSpec) (*corev1.Pod, error) {
	of := w.Namespace + "/" + spec.PodName
	pod, err := find[*corev1.Pod](ctx, p.set, "pods", w.Namespace, spec.PodName)
	if err != nil {
		return nil, fmt.Errorf("while retrieving pod %q named in the PodCertificateRequest: %s", of, err.Error())
	}
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case spec.PodUID != pod.UID:
		return nil, fmt.Errorf("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q", of, spec.PodUID, pod.UID)
	case pod.Spec.NodeName != w.node:
		return nil, w.forbid("pod %q is not running on node %q named in the PodCertificateRequest", of, spec.NodeName)
	case mirror:
		return nil, w.forbid("pod %q is a mirror pod", of)
	case spec.ServiceAccountName != pod.Spec.ServiceAccountName:
		return nil, w.forbid("PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)", of, spec.ServiceAccountName, pod.Spec.ServiceAccountName)
	}
	return pod, p.checkAccount(ctx, w, spec.ServiceAccountName, spec.ServiceAccountUID, of)
}

func (p *Plugin) checkAccount(ctx context.Context, w *write, name string, uid types.UID, of string) error {
	account, err := find[*corev1.ServiceAccount](ctx, p.set, "serviceaccounts", w.Namespace, name)
	if err != nil {
		return fmt.Errorf("while retrieving service account %q named in the PodCertificateRequest: %s", w.Namespace+"/"+name, err.Error())
	}
	if account.UID != uid {
		return fmt.Errorf("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)", of, uid, account.UID)
	}
	return nil
}

// checkPodSigner refuses signers that no volume of the pod names, unless the node has a right on
// the signer.
func (p *Plugin) checkPodSigner(ctx context.Context, w *write, pod *corev1.Pod, spec *certificatesv1.PodCertificateRequestSpec) error {
	if namesSigner(pod, spec.SignerName) {
		return nil
	}
	decision, _, err := p.authorizer.Authorize(ctx, auth.Attributes{
		User: w.user, Verb: verbRequestSigner, Group: certificatesv1.GroupName, Version: w.Resource.Version,
		// The names of resources have no slash.
		Resource: strings.ReplaceAll(spec.SignerName, "/", ":"), Namespace: w.Namespace, Name: spec.ServiceAccountName,
	})
	switch {
	case decision == auth.Allow: // whatever another authorizer failed to say
		return nil
	case err != nil:
		return w.forbid("error authorizing %s to request podcertificaterequests for signer %q: %w", w.user.Name, spec.SignerName, err)
	}
	return w.forbid("pod %q does not mount a podCertificate projected volume for signer %q", w.Namespace+"/"+spec.PodName, spec.SignerName)
}

func namesSigner(pod *corev1.Pod, signer string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.PodCertificate != nil && s.PodCertificate.SignerName == signer
		})
	})
}
