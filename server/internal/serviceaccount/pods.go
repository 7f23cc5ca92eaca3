package serviceaccount

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// podOf returns the pod that is written, or nil if it is none.
func podOf(q *registry.Request) *corev1.Pod {
	if q.Resource.GroupResource() != podsResource {
		return nil
	}
	pod, _ := q.Object.(*corev1.Pod)
	return pod
}

func isMirror(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// Admit is the hook that gives each pod an account, which must exist, and the
// volume with the account's token, unless the pod or the account opts out.
func (a *Accounts) Admit(ctx context.Context, q *registry.Request) error {
	pod := podOf(q)
	if pod == nil || q.Operation != registry.Create || q.Subresource != "" {
		return nil
	}
	if isMirror(pod) {
		return refuseMirror(q, pod)
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = DefaultName
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := a.accountOf(ctx, q, pod)
	if err != nil {
		return err
	}
	if wantsToken(pod, account) {
		mountToken(&pod.Spec)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
	return limitSecrets(q, pod, account)
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
