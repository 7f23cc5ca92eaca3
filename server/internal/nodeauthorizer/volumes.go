package nodeauthorizer

import corev1 "k8s.io/api/core/v1"

// mountSecrets returns the secrets that a kubelet needs to mount a volume. Secrets that
// only controllers need do not count. A reference without a namespace is about that of the
// claim, where Kubernetes has it so.
func mountSecrets(pv *corev1.PersistentVolume) []secretKey {
	claimNamespace := ""
	if pv.Spec.ClaimRef != nil {
		claimNamespace = pv.Spec.ClaimRef.Namespace
	}
	var keys []secretKey
	add := func(ref *corev1.SecretReference, fallback string) {
		if ref == nil || ref.Name == "" {
			return
		}
		namespace := ref.Namespace
		if namespace == "" {
			namespace = fallback
		}
		if namespace != "" {
			keys = append(keys, secretKey{namespace, ref.Name})
		}
	}
	v := &pv.Spec.PersistentVolumeSource
	switch {
	case v.AzureFile != nil:
		ref := &corev1.SecretReference{Name: v.AzureFile.SecretName}
		if v.AzureFile.SecretNamespace != nil {
			ref.Namespace = *v.AzureFile.SecretNamespace
		}
		add(ref, claimNamespace)
	case v.CephFS != nil:
		add(v.CephFS.SecretRef, claimNamespace)
	case v.Cinder != nil:
		add(v.Cinder.SecretRef, "")
	case v.FlexVolume != nil:
		add(v.FlexVolume.SecretRef, claimNamespace)
	case v.RBD != nil:
		add(v.RBD.SecretRef, claimNamespace)
	case v.ScaleIO != nil:
		add(v.ScaleIO.SecretRef, claimNamespace)
	case v.ISCSI != nil:
		add(v.ISCSI.SecretRef, claimNamespace)
	case v.StorageOS != nil && v.StorageOS.SecretRef != nil:
		add(&corev1.SecretReference{Namespace: v.StorageOS.SecretRef.Namespace, Name: v.StorageOS.SecretRef.Name}, "")
	case v.CSI != nil:
		add(v.CSI.NodePublishSecretRef, "")
		add(v.CSI.NodeStageSecretRef, "")
		add(v.CSI.NodeExpandSecretRef, "")
	}
	return keys
}
