package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/levelwire/levelwire/server/internal/registry"
)

const (
	// volumePrefix and a random end name the volume with the token.
	volumePrefix = "kube-api-access-"
	// mountPath is the path at which client libraries look for the token.
	mountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// podTokenSeconds is the lifetime of a pod's token before the kubelet requests
	// another. It is Kubernetes' number, by which other programs recognize the
	// volume.
	podTokenSeconds = 3607
	volumeMode      = 0o644
)

var podsResource = schema.GroupResource{Resource: "pods"}

// Admit is the hook that gives each pod an account, which must exist, and the
// volume with the account's token, unless the pod or the account opts out.
func (a *Accounts) Admit(ctx context.Context, q *registry.Request) error {
	if q.Operation != registry.Create || q.Resource.GroupResource() != podsResource || q.Subresource != "" {
		return nil
	}
	pod, ok := q.Object.(*corev1.Pod)
	if !ok {
		return nil
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return refuseMirror(q, pod)
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = DefaultName
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := a.get(ctx, q.Namespace, pod.Spec.ServiceAccountName)
	switch {
	case apierrors.IsNotFound(err):
		return q.Forbidden(fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found",
			q.Namespace, pod.Spec.ServiceAccountName, pod.Spec.ServiceAccountName))
	case err != nil:
		return err
	}
	if wantsToken(pod, account) {
		mountToken(&pod.Spec)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
	return nil
}

// refuseMirror refuses mirror pods that refer to objects of the server: a kubelet
// runs such a pod without having read it from the server.
func refuseMirror(q *registry.Request, pod *corev1.Pod) error {
	if pod.Spec.ServiceAccountName != "" {
		return q.Forbidden(errors.New("a mirror pod may not reference service accounts"))
	}
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected != nil && slices.ContainsFunc(projected.Sources, func(p corev1.VolumeProjection) bool { return p.ServiceAccountToken != nil }) {
			return q.Forbidden(errors.New("a mirror pod may not use ServiceAccountToken volume projections"))
		}
	}
	return nil
}

// wantsToken reports whether the pod gets a token volume. The pod's own setting wins
// over the account's.
func wantsToken(pod *corev1.Pod, account *corev1.ServiceAccount) bool {
	switch {
	case pod.Spec.AutomountServiceAccountToken != nil:
		return *pod.Spec.AutomountServiceAccountToken
	case account.AutomountServiceAccountToken != nil:
		return *account.AutomountServiceAccountToken
	}
	return true
}

// mountToken mounts the token in every container that has nothing else mounted at
// its path.
func mountToken(spec *corev1.PodSpec) {
	i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, volumePrefix) })
	name := volumePrefix + rand.String(5)
	if i >= 0 {
		name = spec.Volumes[i].Name
	}
	mounted := mountIn(spec.InitContainers, name)
	mounted = mountIn(spec.Containers, name) || mounted
	if mounted && i < 0 {
		spec.Volumes = append(spec.Volumes, tokenVolume(name))
	}
}

func mountIn(containers []corev1.Container, volume string) (mounted bool) {
	for i := range containers {
		c := &containers[i]
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mountPath }) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, ReadOnly: true, MountPath: mountPath})
			mounted = true
		}
	}
	return mounted
}

// tokenVolume returns the volume with the token, the certificate authority of the
// server, and the name of the namespace.
func tokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(volumeMode)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: corev1.ServiceAccountTokenKey, ExpirationSeconds: new(int64(podTokenSeconds))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: RootCAName},
				Items:                []corev1.KeyToPath{{Key: corev1.ServiceAccountRootCAKey, Path: corev1.ServiceAccountRootCAKey}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: corev1.ServiceAccountNamespaceKey, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}
