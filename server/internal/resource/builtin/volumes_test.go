package builtin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestValidateVolumes: the sources of pods' volumes and of PersistentVolumes are checked, those of
// storage systems that have left Kubernetes, too. All that is wrong is told, in kube-apiserver's
// order.
func TestValidateVolumes(t *testing.T) {
	pod := func(source string) []string { return []string{"spec.volumes.1={name: v, " + source + "}"} }
	volume := func(source string) []string { return []string{"spec.hostPath-", "spec." + source} }
	const in = "spec.volumes[1]."
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     []string
	}{
		{"pod", pod("gcePersistentDisk: {}"), []string{"Required " + in + "persistentDisk.pdName"}},
		{"pod", pod("awsElasticBlockStore: {volumeID: '', partition: 256}"), []string{"Required " + in + "awsElasticBlockStore.volumeID", "Invalid " + in + "awsElasticBlockStore.partition"}},
		{"pod", pod("gitRepo: {directory: /a}"), []string{"Required " + in + "gitRepo.repository", "Invalid " + in + "gitRepo.directory"}},
		{"pod", pod("iscsi: {targetPortal: a, iqn: a, lun: 256}"), []string{"Invalid " + in + "iscsi.iqn", "Invalid " + in + "iscsi.lun"}},
		{"pod", pod("fc: {targetWWNs: [a]}"), []string{"Required " + in + "fc.lun"}},
		{"pod", pod("quobyte: {registry: 'a:1,b', volume: ''}"), []string{"Invalid " + in + "quobyte.registry", "Required " + in + "quobyte.volume"}},
		{"pod", pod("flocker: {}"), []string{"Required " + in + "flocker"}},
		{"pod", pod("flexVolume: {driver: '', options: {a.k8s.io/b: c}}"), []string{"Required " + in + "flexVolume.driver", "Invalid " + in + "flexVolume.options[a.k8s.io/b]"}},
		{"pod", pod("azureDisk: {diskName: a, diskURI: a}"), []string{"NotSupported " + in + "azureDisk.diskURI"}},
		{"pod", pod("azureDisk: {diskName: a, diskURI: a}, projected: {}"), []string{"NotSupported " + in + "azureDisk.diskURI", "Forbidden " + in + "projected"}},
		{"pod", pod("csi: {driver: A_b}"), []string{"Invalid " + in + "csi.driver"}},
		{"pod", pod("nfs: {}"), []string{"Required " + in + "nfs.server", "Required " + in + "nfs.path", "Invalid " + in + "nfs.path"}},
		{"pod", pod("hostPath: {path: /a, type: Pipe}"), []string{"NotSupported " + in + "hostPath.type"}},
		{"pod", pod("image: {pullPolicy: Sometimes}"), []string{"Required " + in + "image.reference", "NotSupported " + in + "image.pullPolicy"}},
		{"pod", pod("hostPath: {path: ''}, cephfs: {monitors: []}, csi: {driver: a}"),
			[]string{"Required " + in + "hostPath.path", "Forbidden " + in + "cephFS", "Forbidden " + in + "csi"}},
		{"pod", pod("projected: {sources: [{}]}"), nil},
		{"pod", pod("projected: {sources: [{secret: {name: a, items: [{key: a, path: ..b}]}}]}"), []string{"Invalid " + in + "projected.sources[0].secret.items[0].path"}},
		{"pod", pod("projected: {sources: [{secret: {name: a, items: [{key: a, path: b}]}}, {configMap: {name: a, items: [{key: a, path: b}]}}]}"), []string{"Invalid " + in + "projected"}},
		{"pod", pod("projected: {sources: [{secret: {name: a}, configMap: {name: a}}]}"), []string{"Forbidden " + in + "projected.sources[0]"}},
		{"pod", pod("projected: {sources: [{clusterTrustBundle: {path: a}}]}"), []string{"Required " + in + "projected.sources[0].clusterTrustBundle"}},
		{"pod", pod("projected: {sources: [{podCertificate: {signerName: a.b/c, keyType: RSA1024}}]}"),
			[]string{"NotSupported " + in + "projected.sources[0].podCertificate.keyType", "Required " + in + "projected.sources[0].podCertificate"}},
		{"pod", append(pod("emptyDir: {}"), "spec.containers.0.volumeDevices=[{name: v, devicePath: /a/../b}]"),
			[]string{"Invalid spec.containers[0].volumeDevices[0].name", "Invalid spec.containers[0].volumeDevices[0].devicePath"}},
		{"pod", append(pod("persistentVolumeClaim: {claimName: a}"), "spec.containers.0.volumeDevices=[{name: v, devicePath: /a}]"), nil},
		{"pod", append(pod("emptyDir: {}"), "spec.containers.0.volumeMounts=[{name: v, mountPath: /a, recursiveReadOnly: Enabled}]"),
			[]string{"Forbidden spec.containers[0].volumeMounts.recursiveReadOnly"}},
		{"pod", append(pod("emptyDir: {}"), "spec.containers.0.volumeMounts=[{name: v, mountPath: /a, bindMountOptions: [noexec, nodev, nosuid]}]"), nil},
		{"pod", append(pod("emptyDir: {}"), "spec.containers.0.volumeMounts=[{name: v, mountPath: /a, bindMountOptions: [noexec, exec, noexec]}]"),
			[]string{"NotSupported spec.containers[0].volumeMounts[0].bindMountOptions[1]", "Duplicate spec.containers[0].volumeMounts[0].bindMountOptions[2]"}},
		{"pod", append(pod("image: {reference: a}"), "spec.containers.0.volumeMounts=[{name: v, mountPath: /a, bindMountOptions: [nodev]}]"),
			[]string{"Invalid spec.containers[0].volumeMounts[0].bindMountOptions"}},

		{"pod", pod("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"), nil},
		{"pod", append(pod("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"), "metadata.name="+strings.Repeat("a", 252)),
			[]string{"Invalid " + in + "name"}},
		{"pod", append(pod("persistentVolumeClaim: {claimName: web-e}"), "metadata.name=web",
			"spec.volumes.2={name: e, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}"),
			[]string{"Invalid " + in + "persistentVolumeClaim.claimName"}},
		{"pod", pod("downwardAPI: {items: [{path: a, fieldRef: {apiVersion: v2, fieldPath: metadata.name}}]}"), []string{"Invalid " + in + "downwardAPI.fieldRef.fieldPath"}},
		{"pod", pod("downwardAPI: {items: [{path: a, resourceFieldRef: {containerName: web, resource: limits.cpu, divisor: 1k}}]}"), []string{"Invalid " + in + "downwardAPI.resourceFieldRef.divisor"}},
		{"pod", pod("downwardAPI: {items: [{path: a, resourceFieldRef: {containerName: web, resource: limits.cpu, divisor: 1m}}]}"), nil},
		{"pod", pod("downwardAPI: {items: [{path: a, resourceFieldRef: {resource: other}}]}"), []string{"Required " + in + "downwardAPI.resourceFieldRef.containerName"}},
		{"pod", pod("downwardAPI: {items: [{path: a, resourceFieldRef: {containerName: web, resource: requests.hugepages-2Mi, divisor: 3}}]}"), []string{"Invalid " + in + "downwardAPI.resourceFieldRef.divisor"}},
		{"pod", pod("projected: {sources: [{serviceAccountToken: {path: a}}]}"), nil},
		{"pod", append(pod("projected: {sources: [{serviceAccountToken: {path: a}}]}"), "spec.volumes.3={name: e, emptyDir: {}}", "spec.serviceAccountName-"),
			[]string{"Forbidden " + in + "projected.sources[0].serviceAccountToken"}},

		{"volume", volume("flexVolume={driver: a}"), nil},
		{"volume", []string{"spec.flexVolume={driver: a}"}, nil}, // beside another one
		{"volume", []string{"spec.nfs={server: a, path: /a}"}, []string{"Forbidden spec.nfs"}},
		{"volume", volume("csi={driver: a, volumeHandle: '', nodePublishSecretRef: {name: a b}}"),
			[]string{"Required spec.csi.volumeHandle", "Invalid spec.csi.nodePublishSecretRef.name", "Required spec.csi.nodePublishSecretRef.namespace"}},
		{"volume", volume("local={path: /a}"), []string{"Required spec.nodeAffinity"}},
		{"volume", volume("glusterfs={endpoints: a, path: a, endpointsNamespace: ''}"), []string{"Invalid spec.glusterfs.endpointsNamespace"}},
		{"volume", []string{"spec.accessModes=[Sometimes]", "spec.storageClassName=a b", "spec.volumeMode=Tape"},
			[]string{"NotSupported spec.accessModes", "Invalid spec.storageClassName", "NotSupported spec.volumeMode"}},
		{"volume", []string{"spec.capacity={cpu: 0}"}, []string{"NotSupported spec.capacity", "Invalid spec.capacity[cpu]"}},
		{"volume", []string{"spec.volumeAttributesClassName=a"}, []string{"Required spec.csi"}},
		{"volume", []string{"metadata.annotations={volume.beta.kubernetes.io/mount-options: ro}"}, []string{"Forbidden metadata.annotations.volume.beta.kubernetes.io/mount-options"}},

		{"claim", []string{"spec.accessModes=[ReadWriteOncePod, ReadWriteOnce]"}, []string{"Forbidden spec.accessModes"}},
		{"claim", []string{"spec.storageClassName=a b", "spec.volumeAttributesClassName=a b"}, []string{"Invalid spec.storageClassName", "Invalid spec.volumeAttributesClassName"}},
		{"claim", []string{"spec.dataSourceRef={kind: ConfigMap, name: ''}"},
			[]string{"Required spec.dataSource.name", "Invalid spec.dataSource", "Required spec.dataSourceRef.name", "Invalid spec.dataSourceRef"}},
		{"claim", []string{"spec.dataSource={kind: PersistentVolumeClaim, name: a}", "spec.dataSourceRef={kind: PersistentVolumeClaim, name: b}"}, []string{"Invalid spec"}},
	} {
		t.Run(tt.manifest+" "+strings.Join(tt.edits, " "), func(t *testing.T) {
			r, obj := manifest(t, tt.manifest, tt.edits...)
			if got := complaints(validateNew(r, obj)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestDataSources: both fields say what a new claim is filled with. The older one names claims and
// snapshots only; what else it names is dropped.
func TestDataSources(t *testing.T) {
	const claim = `{"apiGroup":null,"kind":"PersistentVolumeClaim","name":"a"}`
	const other = `{"apiGroup":"a.example","kind":"A","name":"a"}`
	for _, tt := range []struct{ edit, source, ref string }{
		{"spec.dataSource={kind: PersistentVolumeClaim, name: a}", claim, claim},
		{"spec.dataSource={kind: ConfigMap, name: a}", "null", "null"},
		{"spec.dataSourceRef={apiGroup: a.example, kind: A, name: a}", other, other},
		{"spec.dataSourceRef={apiGroup: a.example, kind: A, name: a, namespace: b}", "null", `{"apiGroup":"a.example","kind":"A","name":"a","namespace":"b"}`},
	} {
		_, obj := manifest(t, "claim", tt.edit)
		spec := obj.(*corev1.PersistentVolumeClaim).Spec
		source, _ := json.Marshal(spec.DataSource)
		ref, _ := json.Marshal(spec.DataSourceRef)
		if string(source) != tt.source || string(ref) != tt.ref {
			t.Errorf("%s: %s and %s, not %s and %s", tt.edit, source, ref, tt.source, tt.ref)
		}
	}
}

// TestVolumeWarnings: what is deprecated in volumes and claims is told to whoever writes it.
func TestVolumeWarnings(t *testing.T) {
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     string
	}{
		{"volume", []string{"spec.hostPath-", "spec.rbd={monitors: [a], image: a}"}, "spec.rbd: deprecated in v1.28, non-functional in v1.31+"},
		{"volume", []string{"spec.persistentVolumeReclaimPolicy=Recycle"},
			"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."},
		{"volume", []string{"spec.nodeAffinity={required: {nodeSelectorTerms: [{matchExpressions: [{key: beta.kubernetes.io/os, operator: Exists}]}]}}"},
			`spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead`},
		{"claim", []string{"spec.resources.requests.storage=1.5"}, `spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer`},
		{"claim", []string{"metadata.annotations={volume.beta.kubernetes.io/storage-class: a}"},
			`metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead`},
	} {
		r, obj := manifest(t, tt.manifest, tt.edits...)
		got := r.Strategy.Warnings(obj, nil)
		if own := builtin.Inactive(r.GroupVersionKind().GroupKind()); !slices.Equal(got, []string{own, tt.want}) {
			t.Errorf("%q: %q, not %q", tt.edits, got, tt.want)
		}
	}
}
