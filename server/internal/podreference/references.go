package podreference

import corev1 "k8s.io/api/core/v1"

// The resources that a pod refers to by name, in its own namespace.
const (
	Secrets         = "secrets"
	ConfigMaps      = "configmaps"
	Claims          = "persistentvolumeclaims"
	ResourceClaims  = "resourceclaims"
	ServiceAccounts = "serviceaccounts"
)

// Each calls f with the resource and the name of every object that a pod refers to. Names
// may come several times, and may be empty where the pod leaves them out.
func Each(pod *corev1.Pod, f func(resource, name string)) {
	spec := &pod.Spec
	if spec.ServiceAccountName != "" {
		f(ServiceAccounts, spec.ServiceAccountName)
	}
	for i := range spec.ImagePullSecrets {
		f(Secrets, spec.ImagePullSecrets[i].Name)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			ofEnvironment(containers[i].EnvFrom, containers[i].Env, f)
		}
	}
	for i := range spec.EphemeralContainers {
		ofEnvironment(spec.EphemeralContainers[i].EnvFrom, spec.EphemeralContainers[i].Env, f)
	}
	for i := range spec.Volumes {
		ofVolume(pod, &spec.Volumes[i], f)
	}
	ofResourceClaims(pod, f)
}

func ofEnvironment(from []corev1.EnvFromSource, env []corev1.EnvVar, f func(resource, name string)) {
	for i := range from {
		if ref := from[i].SecretRef; ref != nil {
			f(Secrets, ref.Name)
		}
		if ref := from[i].ConfigMapRef; ref != nil {
			f(ConfigMaps, ref.Name)
		}
	}
	for i := range env {
		value := env[i].ValueFrom
		if value == nil {
			continue
		}
		if ref := value.SecretKeyRef; ref != nil {
			f(Secrets, ref.Name)
		}
		if ref := value.ConfigMapKeyRef; ref != nil {
			f(ConfigMaps, ref.Name)
		}
	}
}

func ofVolume(pod *corev1.Pod, v *corev1.Volume, f func(resource, name string)) {
	switch {
	case v.ConfigMap != nil:
		f(ConfigMaps, v.ConfigMap.Name)
	case v.PersistentVolumeClaim != nil:
		f(Claims, v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		f(Claims, EphemeralClaim(pod, v))
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if source.Secret != nil {
				f(Secrets, source.Secret.Name)
			}
			if source.ConfigMap != nil {
				f(ConfigMaps, source.ConfigMap.Name)
			}
		}
	default:
		if name, ok := secretOf(v); ok {
			f(Secrets, name)
		}
	}
}

// EphemeralClaim returns the name of the claim of an ephemeral volume, which is made of
// the names of both.
func EphemeralClaim(pod *corev1.Pod, v *corev1.Volume) string { return pod.Name + "-" + v.Name }

// secretOf returns the secret that a volume is, or is mounted with.
func secretOf(v *corev1.Volume) (name string, ok bool) {
	var ref *corev1.LocalObjectReference
	switch {
	case v.Secret != nil:
		return v.Secret.SecretName, true
	case v.AzureFile != nil:
		return v.AzureFile.SecretName, true
	case v.CephFS != nil:
		ref = v.CephFS.SecretRef
	case v.Cinder != nil:
		ref = v.Cinder.SecretRef
	case v.FlexVolume != nil:
		ref = v.FlexVolume.SecretRef
	case v.RBD != nil:
		ref = v.RBD.SecretRef
	case v.ScaleIO != nil:
		ref = v.ScaleIO.SecretRef
	case v.ISCSI != nil:
		ref = v.ISCSI.SecretRef
	case v.StorageOS != nil:
		ref = v.StorageOS.SecretRef
	case v.CSI != nil:
		ref = v.CSI.NodePublishSecretRef
	}
	if ref == nil {
		return "", false
	}
	return ref.Name, true
}

// ofResourceClaims calls f with the claims of devices that a pod names, and with those
// that were made for it.
func ofResourceClaims(pod *corev1.Pod, f func(resource, name string)) {
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimName != nil {
			f(ResourceClaims, *claim.ResourceClaimName)
		}
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.ResourceClaimName != nil {
			f(ResourceClaims, *made.ResourceClaimName)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		f(ResourceClaims, extended.ResourceClaimName)
	}
}
