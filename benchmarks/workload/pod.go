package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	replicas   = 200 // pods of one workload
	namespaces = 50
	nodes      = 1000
)

// epoch is when everything was made.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Name has the parts that a Deployment gives its pods.
func Name(i int) string {
	return fmt.Sprintf("service-%d-%s-%05x", i/replicas, templateHash(i), i)
}

// Namespace is where the i-th pod is.
func Namespace(i int) string    { return "team-" + strconv.Itoa(i/replicas%namespaces) }
func templateHash(i int) string { return fmt.Sprintf("%010x", 0x5f3a91c07+i/replicas*7919) }
func uid(kind, i int) types.UID {
	d := digest(kind, i)
	return types.UID(d[:8] + "-" + d[8:12] + "-4" + d[13:16] + "-8" + d[17:20] + "-" + d[20:32])
}

// digest is what looks like chance, and what compresses as badly, but is the
// same each time.
func digest(kind, i int) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(kind)<<32|uint64(i)))
	return hex.EncodeToString(sum[:])
}
func address(i int) string { return fmt.Sprintf("10.%d.%d.%d", 64+i>>16, i>>8&255, i&255) }

// Node is where the i-th pod runs.
func Node(i int) string { return "node-" + strconv.Itoa(i*7919%nodes) }
func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: epoch.Add(time.Duration(seconds) * time.Second)}
}

// Pod is the i-th pod as it is found in clusters: made by a Deployment, with a
// service account's token mounted, running, and with the field managers that
// the controller manager and the kubelet leave behind. Its JSON has 4.4 kB,
// its protobuf 2.6.
func Pod(i int, ready bool) *corev1.Pod {
	workload, hash := i/replicas, templateHash(i)
	name := "service-" + strconv.Itoa(workload)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: Name(i), GenerateName: name + "-" + hash + "-", Namespace: Namespace(i), UID: uid(1, i),
		CreationTimestamp: *at(i % 100_000),
		Labels:            map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop", "pod-template-hash": hash},
		Annotations:       map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + hash,
			UID: uid(2, workload), Controller: new(true), BlockOwnerDeletion: new(true)}},
		ManagedFields: managers(i),
	}}
	p.Spec = podSpec(i, name)
	p.Status = podStatus(i, ready)
	return p
}

func podSpec(i int, name string) corev1.PodSpec {
	token := fmt.Sprintf("kube-api-access-%05x", i)
	return corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.example.com/shop/" + name + ":v1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Env:   []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "GOMAXPROCS", Value: "2"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
			ReadinessProbe: &corev1.Probe{TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http"), Scheme: "HTTP"}}},
			VolumeMounts:           []corev1.VolumeMount{{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}},
		Volumes: []corev1.Volume{{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o644)),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			},
		}}}},
		RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)), DNSPolicy: corev1.DNSClusterFirst,
		ServiceAccountName: "default", DeprecatedServiceAccount: "default", NodeName: Node(i),
		SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: corev1.DefaultSchedulerName,
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		},
		Priority: new(int32(0)), EnableServiceLinks: new(true), PreemptionPolicy: new(corev1.PreemptLowerPriority),
	}
}

func podStatus(i int, ready bool) corev1.PodStatus {
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionFalse
	}
	condition := func(typ corev1.PodConditionType, status corev1.ConditionStatus, after int) corev1.PodCondition {
		return corev1.PodCondition{Type: typ, Status: status, LastTransitionTime: *at(i%100_000 + after)}
	}
	return corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: address(i * 7919 % nodes), PodIP: address(i), PodIPs: []corev1.PodIP{{IP: address(i)}},
		HostIPs: []corev1.HostIP{{IP: address(i * 7919 % nodes)}}, StartTime: at(i%100_000 + 1), QOSClass: corev1.PodQOSBurstable,
		Conditions: []corev1.PodCondition{
			condition(corev1.PodInitialized, corev1.ConditionTrue, 1), condition(corev1.PodReady, status, 9),
			condition(corev1.ContainersReady, status, 9), condition(corev1.PodScheduled, corev1.ConditionTrue, 0),
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", Ready: ready, Started: new(true), Image: "registry.example.com/shop/service-" + strconv.Itoa(i/replicas) + ":v1.2.3",
			ImageID:     fmt.Sprintf("registry.example.com/shop/service-%d@sha256:%s", i/replicas, digest(3, i/replicas)),
			ContainerID: "containerd://" + digest(4, i), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *at(i%100_000 + 3)}},
		}},
	}
}

func managers(i int) []metav1.ManagedFieldsEntry {
	controller := fmt.Sprintf(`{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"%s\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"GOMAXPROCS\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{}}},"f:restartPolicy":{},"f:schedulerName":{}}}`, uid(2, i/replicas))
	kubelet := fmt.Sprintf(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"%s\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`, address(i))
	return []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: at(i % 100_000),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(controller)},
		{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: at(i%100_000 + 9),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(kubelet), Subresource: "status"},
	}
}

// Small is Pod without field managers and probe: 2.9 kB of JSON, 1.5 kB of
// protobuf.
func Small(i int) *corev1.Pod {
	p := Pod(i, true)
	p.ManagedFields = nil
	p.Spec.Containers[0].ReadinessProbe = nil
	return p
}
