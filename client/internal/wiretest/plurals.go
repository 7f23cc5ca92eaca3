package wiretest

// Plurals are the names in URLs by kind, from the API reference of Kubernetes.
var Plurals = map[string]string{
	"Pod": "pods", "Node": "nodes", "Namespace": "namespaces", "Service": "services", "Endpoints": "endpoints",
	"Event": "events", "ConfigMap": "configmaps", "Secret": "secrets", "ServiceAccount": "serviceaccounts",
	"PersistentVolume": "persistentvolumes", "PersistentVolumeClaim": "persistentvolumeclaims",
	"ReplicationController": "replicationcontrollers", "LimitRange": "limitranges", "ResourceQuota": "resourcequotas",
	"PodTemplate": "podtemplates", "ComponentStatus": "componentstatuses",
	"Deployment": "deployments", "ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets",
	"ControllerRevision": "controllerrevisions", "Job": "jobs", "CronJob": "cronjobs", "Lease": "leases",
	"LeaseCandidate": "leasecandidates", "EndpointSlice": "endpointslices",
	"Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	"StorageClass": "storageclasses", "VolumeAttachment": "volumeattachments", "CSIDriver": "csidrivers", "CSINode": "csinodes",
	"CSIStorageCapacity": "csistoragecapacities", "VolumeAttributesClass": "volumeattributesclasses",
	"Ingress": "ingresses", "IngressClass": "ingressclasses", "NetworkPolicy": "networkpolicies", "IPAddress": "ipaddresses",
	"ServiceCIDR": "servicecidrs", "PodDisruptionBudget": "poddisruptionbudgets",
	"HorizontalPodAutoscaler": "horizontalpodautoscalers", "PriorityClass": "priorityclasses", "RuntimeClass": "runtimeclasses",
	"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
	"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
	"MutatingAdmissionPolicy": "mutatingadmissionpolicies", "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
	"CertificateSigningRequest": "certificatesigningrequests", "ClusterTrustBundle": "clustertrustbundles",
	"PodCertificateRequest": "podcertificaterequests", "FlowSchema": "flowschemas",
	"PriorityLevelConfiguration": "prioritylevelconfigurations", "StorageVersion": "storageversions",
	"StorageVersionMigration": "storageversionmigrations", "ResourceClaim": "resourceclaims", "ResourceSlice": "resourceslices",
	"ResourceClaimTemplate": "resourceclaimtemplates", "DeviceClass": "deviceclasses", "DeviceTaintRule": "devicetaintrules",
	"ResourcePoolStatusRequest": "resourcepoolstatusrequests", "Workload": "workloads", "PodGroup": "podgroups",
	"CompositePodGroup": "compositepodgroups", "EvictionRequest": "evictionrequests", "Eviction": "evictions",
}
