package builtin_test

import (
	"slices"
	"strings"
	"testing"
)

// TestReferencesAndBounds: names that no object can have are refused where an object refers to one, and so is
// what is larger than kube-apiserver lets it be.
func TestReferencesAndBounds(t *testing.T) {
	const (
		inline  = "spec.source.inlineVolumeSpec"
		metrics = "spec.metrics="
		object  = "{type: Object, object: {describedObject: {apiVersion: v1, kind: Service, name: s}, metric: {name: m}, target: {type: Value, value: 1}}}"
		up      = "spec.behavior.scaleUp"
		policy  = "spec.behavior.scaleUp.policies[0]"
	)
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     []string
	}{
		{"pod", []string{"spec.containers.0.env=[{name: A, valueFrom: {secretKeyRef: {name: Bad Name, key: k}}}]"}, []string{"Invalid spec.containers[0].env[0].valueFrom.secretKeyRef.name"}},
		{"pod", []string{"spec.containers.0.env=[{name: A, valueFrom: {configMapKeyRef: {name: Bad Name, key: a b}}}]"},
			[]string{"Invalid spec.containers[0].env[0].valueFrom.configMapKeyRef.name", "Invalid spec.containers[0].env[0].valueFrom.configMapKeyRef.key"}},
		{"pod", []string{"spec.containers.0.env=[{name: A, valueFrom: {secretKeyRef: {key: k}}}]"}, []string{"Invalid spec.containers[0].env[0].valueFrom.secretKeyRef.name"}},
		{"deployment", []string{"spec.template.spec.containers.0.env=[{name: A, valueFrom: {secretKeyRef: {name: a_b, key: k}}}]"}, []string{"Invalid spec.template.spec.containers[0].env[0].valueFrom.secretKeyRef.name"}},
		{"rolebinding", []string{"roleRef.name=a%b"}, []string{"Invalid roleRef.name"}},
		{"rolebinding", []string{"roleRef.name=.."}, []string{"Invalid roleRef.name"}},
		{"rolebinding", []string{"roleRef.name=system:discovery"}, nil},
		{"networkpolicy", []string{"spec.policyTypes=[Ingress, Egress, Ingress]"}, []string{"Invalid spec.policyTypes"}},
		{"networkpolicy", []string{"spec.policyTypes=[Ingress, Ingress]"}, nil},

		{"storageclass", []string{"provisioner=a/b/c"}, []string{"Invalid provisioner"}},
		{"storageclass", []string{"provisioner=Example.com/Disks"}, nil},
		{"storageclass", []string{"parameters={'': x}"}, []string{"Invalid parameters"}},
		{"storageclass", []string{"parameters={p: " + strings.Repeat("x", 256<<10) + "}"}, []string{"TooLong parameters"}},
		{"storageclass", []string{"reclaimPolicy=Recycle"}, []string{"NotSupported reclaimPolicy"}},
		{"storageclass", []string{"allowedTopologies=[{matchLabelExpressions: [{key: zone, values: [a, a]}]}]"}, []string{"Duplicate allowedTopologies[0].matchLabelExpressions[0].values[1]"}},
		{"storageclass", []string{"allowedTopologies=[{matchLabelExpressions: [{key: zone, values: []}, {key: zone, values: [b]}, {key: a b, values: [c]}]}]"},
			[]string{"Required allowedTopologies[0].matchLabelExpressions[0].values", "Duplicate allowedTopologies[0].matchLabelExpressions[1].key", "Invalid allowedTopologies[0].matchLabelExpressions[2].key"}},
		{"storageclass", []string{"allowedTopologies=[{matchLabelExpressions: [{key: zone, values: [a, b]}]}, {matchLabelExpressions: [{key: zone, values: [b, a]}]}]"}, []string{"Duplicate allowedTopologies[1].matchLabelExpressions"}},
		{"csidriver", []string{"spec.tokenRequests=[{audience: a}, {audience: a}, {audience: b, expirationSeconds: 599}, {audience: c, expirationSeconds: 4294967297}]"},
			[]string{"Duplicate spec.tokenRequests[1].audience", "Invalid spec.tokenRequests[2].expirationSeconds", "Invalid spec.tokenRequests[3].expirationSeconds"}},
		{"csidriver", []string{"spec.nodeAllocatableUpdatePeriodSeconds=9"}, []string{"Invalid spec.nodeAllocatableUpdatePeriodSeconds"}},
		{"csidriver", []string{"spec.serviceAccountTokenInSecrets=true"}, []string{"Invalid spec.serviceAccountTokenInSecrets"}},
		{"csinode", []string{"spec.drivers=[{name: a_b, nodeID: node}]"}, []string{"Invalid spec.drivers[0].name"}},
		{"csinode", []string{"spec.drivers=[{name: A.b, nodeID: node, allocatable: {count: -1}, topologyKeys: [k, k]}]"}, []string{"Invalid spec.drivers[0].allocatable.count", "Duplicate spec.drivers[0]"}},
		{"csinode", []string{"spec.drivers=[{name: a, nodeID: " + strings.Repeat("n", 257) + "}]"}, []string{"Invalid spec.drivers[0].nodeID"}},
		{"attachment", []string{"spec.attacher=a_b", "spec.nodeName=a b"}, []string{"Invalid spec.nodeName", "Invalid spec.attacher"}},
		{"attachment", []string{"spec.source.persistentVolumeName=A"}, []string{"Invalid spec.source.persistentVolumeName"}},
		{"attachment", []string{"spec.source={}"}, []string{"Required spec.source"}},
		{"attachment", []string{"spec.source={inlineVolumeSpec: {accessModes: [ReadWriteOnce], csi: {driver: d, volumeHandle: h}, persistentVolumeReclaimPolicy: Retain, volumeMode: Filesystem, volumeAttributesClassName: A_b}}"}, nil},
		{"attachment", []string{"spec.source={inlineVolumeSpec: {}}"}, []string{"Required " + inline + ".csi", "Required " + inline + ".accessModes", "Required " + inline}},
		{"attachment", []string{"spec.source={inlineVolumeSpec: {accessModes: [ReadWriteOnce, ReadWriteOncePod, Never], claimRef: {name: x}, capacity: {storage: 1Gi}, persistentVolumeReclaimPolicy: Delete, nodeAffinity: {}," +
			" storageClassName: c, volumeMode: Block, hostPath: {path: /}, csi: {driver: d, volumeHandle: h}}}"},
			[]string{
				"Forbidden " + inline + ".claimRef", "Forbidden " + inline + ".capacity", "NotSupported " + inline + ".accessModes", "Forbidden " + inline + ".accessModes",
				"Forbidden " + inline + ".persistentVolumeReclaimPolicy", "Forbidden " + inline + ".nodeAffinity", "Forbidden " + inline + ".csi",
				"Forbidden " + inline + ".storageClassName", "Forbidden " + inline + ".volumeMode",
			}},
		{"attachment", []string{"spec.source={inlineVolumeSpec: {accessModes: [ReadWriteOnce], csi: {driver: '', volumeHandle: ''}}}"}, []string{"Required " + inline + ".csi.driver", "Required " + inline + ".csi.volumeHandle"}},
		{"attachment", []string{"spec.source={inlineVolumeSpec: {accessModes: [ReadWriteOnce], local: {path: /a}, nodeAffinity: {required: {nodeSelectorTerms: [{}]}}}}"},
			[]string{"Required " + inline + ".csi", "Forbidden " + inline + ".nodeAffinity", "Required " + inline + ".nodeAffinity"}},
		{"attachment", []string{"spec.source={inlineVolumeSpec: {accessModes: [ReadWriteOnce], hostPath: {path: //}, persistentVolumeReclaimPolicy: Recycle}}"},
			[]string{"Required " + inline + ".csi", "Forbidden " + inline + ".persistentVolumeReclaimPolicy", "Forbidden " + inline + ".persistentVolumeReclaimPolicy"}},
		{"attributesclass", []string{"driverName=a/b/c"}, []string{"Invalid driverName"}},
		{"attributesclass", []string{"parameters-"}, []string{"Required parameters"}},

		{"autoscaler", []string{up + "={selectPolicy: Any}"}, []string{"NotSupported " + up + ".selectPolicy"}},
		{"autoscaler", []string{up + "={policies: [{type: Pods, value: 1, periodSeconds: 1801}]}"}, []string{"Invalid " + policy + ".periodSeconds"}},
		{"autoscaler", []string{up + "={policies: [{type: Pods, value: 1, periodSeconds: 1800}]}"}, nil},
		{"autoscaler", []string{up + "={policies: [{type: Share, value: 0, periodSeconds: 0}]}"}, []string{"NotSupported " + policy + ".type", "Invalid " + policy + ".value", "Invalid " + policy + ".periodSeconds"}},
		{"autoscaler", []string{up + "={stabilizationWindowSeconds: 3601}"}, []string{"Invalid " + up + ".stabilizationWindowSeconds"}},
		{"autoscaler", []string{"spec.behavior.scaleDown={stabilizationWindowSeconds: -1, tolerance: -1}"},
			[]string{"Invalid spec.behavior.scaleDown.stabilizationWindowSeconds", "Invalid spec.behavior.scaleDown.tolerance"}},
		{"autoscaler", []string{"spec.maxReplicas-"}, []string{"Invalid spec.maxReplicas", "Required spec.maxReplicas"}},
		{"autoscaler", []string{"spec.minReplicas=0"}, []string{"Forbidden spec.metrics"}},
		{"autoscaler", []string{"spec.minReplicas=0", metrics + "[" + object + "]"}, nil},
		{"autoscaler", []string{"spec.scaleTargetRef.kind=a/b", "spec.scaleTargetRef.name=.."}, []string{"Invalid spec.scaleTargetRef.kind", "Invalid spec.scaleTargetRef.name"}},
		{"autoscaler", []string{"spec.scaleTargetRef.apiVersion=v1"}, []string{"Invalid spec.scaleTargetRef.apiVersion"}},
		{"autoscaler", []string{"spec.scaleTargetRef.apiVersion=a/b/c"}, []string{"Invalid spec.scaleTargetRef.apiVersion"}},
		{"autoscaler", []string{"spec.scaleTargetRef={apiVersion: v1, kind: ReplicationController, name: r}"}, nil},
		{"autoscaler", []string{metrics + "[{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1, averageValue: 1}}}]"}, []string{"Forbidden spec.metrics[0].resource.target.averageValue"}},
		{"autoscaler", []string{metrics + "[{type: Resource, resource: {name: cpu, target: {type: Share, averageUtilization: 0}}}]"},
			[]string{"Invalid spec.metrics[0].resource.target.type", "Invalid spec.metrics[0].resource.target.averageUtilization"}},
		{"autoscaler", []string{metrics + "[{type: Pods, pods: {metric: {name: a/b}, target: {type: Value, value: 0}}}]"},
			[]string{"Invalid spec.metrics[0].pods.metric.name", "Invalid spec.metrics[0].pods.target.value", "Required spec.metrics[0].pods.target.averageValue"}},
		{"autoscaler", []string{metrics + "[{type: External, external: {metric: {name: m}, target: {type: Value, value: 1, averageValue: 1}}}]"}, []string{"Forbidden spec.metrics[0].external.target.value"}},
		{"autoscaler", []string{metrics + "[{type: ContainerResource, containerResource: {name: cpu, container: A B, target: {type: Utilization, averageUtilization: 1}}}]"}, []string{"Invalid spec.metrics[0].containerResource.container"}},
		{"autoscaler", []string{metrics + "[{type: Resource, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 1}}}]"},
			[]string{"Required spec.metrics[0].resource"}},
	} {
		name := tt.manifest + " " + strings.Join(tt.edits, " ")
		t.Run(name[:min(len(name), 120)], func(t *testing.T) {
			r, obj := manifest(t, tt.manifest, tt.edits...)
			if got := complaints(validateNew(r, obj)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestAutoscalerVersionsThatStay: the version of a target that was accepted once is no reason to refuse another change.
func TestAutoscalerVersionsThatStay(t *testing.T) {
	for _, tt := range []struct {
		edit string
		want []string
	}{
		{"spec.maxReplicas=7", nil},
		{"spec.scaleTargetRef.name=other", nil},
		{"spec.scaleTargetRef.kind=ReplicaSet", []string{"Invalid spec.scaleTargetRef.apiVersion"}},
	} {
		r, old := manifest(t, "autoscaler", "spec.scaleTargetRef.apiVersion=v1")
		_, obj := manifest(t, "autoscaler", "spec.scaleTargetRef.apiVersion=v1", tt.edit)
		if got := complaints(r.Strategy.ValidateUpdate(obj, old)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.edit, got, tt.want)
		}
	}
}
