package builtin_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

func TestNodeRow(t *testing.T) {
	ready := func(status corev1.ConditionStatus) corev1.NodeStatus {
		return corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}
	}
	full := &corev1.Node{ObjectMeta: createdAgo("n1", 26*time.Hour), Status: ready(corev1.ConditionTrue)}
	full.Labels = map[string]string{
		"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "worker",
	}
	full.Status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: "v1.33.0", OSImage: "Linux", KernelVersion: "6.1", Architecture: "arm64", ContainerRuntimeVersion: "containerd://2.0",
	}
	full.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "n1"}, {Type: corev1.NodeInternalIP, Address: "10.1.0.1"},
		{Type: corev1.NodeInternalIP, Address: "fd00::1"}, {Type: corev1.NodeExternalIP, Address: "192.0.2.1"},
	}
	drained := &corev1.Node{ObjectMeta: createdAgo("n2", time.Minute), Status: ready(corev1.ConditionTrue)}
	drained.Spec.Unschedulable = true
	lost := &corev1.Node{ObjectMeta: createdAgo("n3", time.Minute), Status: ready(corev1.ConditionUnknown)}
	runRows(t, []rowTest{
		{"full", full, []any{
			"n1", "Ready", "control-plane,worker", "26h", "v1.33.0", "10.1.0.1", "192.0.2.1", "Linux", "6.1 (arm64)", "containerd://2.0",
		}},
		{"drained", drained, []any{
			"n2", "Ready,SchedulingDisabled", columns.None, "60s", "", columns.None, columns.None, columns.Unknown, columns.Unknown, columns.Unknown,
		}},
		{"lost", lost, []any{"n3", "NotReady", columns.None, "60s", "", columns.None, columns.None, columns.Unknown, columns.Unknown, columns.Unknown}},
		{"empty", &corev1.Node{}, []any{"", "Unknown", columns.None, columns.Unknown, "", columns.None, columns.None, columns.Unknown, columns.Unknown, columns.Unknown}},
	})
}

func TestServiceRow(t *testing.T) {
	service := func(spec corev1.ServiceSpec, ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		s := &corev1.Service{ObjectMeta: createdAgo("s", time.Minute), Spec: spec}
		s.Status.LoadBalancer.Ingress = ingress
		return s
	}
	http := []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}
	runRows(t, []rowTest{
		{"cluster IP", service(corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1", "fd00::1"}, Ports: http,
			Selector: map[string]string{"b": "2", "a": "1"},
		}), []any{"s", "ClusterIP", "10.96.0.1", columns.None, "80/TCP", "60s", "a=1,b=2"}},
		{"headless without ports", service(corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "None"}),
			[]any{"s", "ClusterIP", "None", columns.None, columns.None, "60s", columns.None}},
		{"node port", service(corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ExternalIPs: []string{"192.0.2.1", "192.0.2.2"},
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: "TCP"}, {Port: 53, Protocol: "UDP"}},
		}), []any{"s", "NodePort", columns.None, "192.0.2.1,192.0.2.2", "80:30080/TCP,53/UDP", "60s", columns.None}},
		{"balancer pending", service(corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: http}),
			[]any{"s", "LoadBalancer", columns.None, "<pending>", "80/TCP", "60s", columns.None}},
		{"balancer", service(corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: http, ExternalIPs: []string{"192.0.2.9"}},
			corev1.LoadBalancerIngress{Hostname: "lb.example.com"}, corev1.LoadBalancerIngress{IP: "198.51.100.1", Hostname: "x"}),
			[]any{"s", "LoadBalancer", columns.None, "198.51.100.1,lb.example.com,192.0.2.9", "80/TCP", "60s", columns.None}},
		{"external name", service(corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"}),
			[]any{"s", "ExternalName", columns.None, "db.example.com", columns.None, "60s", columns.None}},
		{"no type", service(corev1.ServiceSpec{}), []any{"s", "", columns.None, columns.Unknown, columns.None, "60s", columns.None}},
	})
}

func TestVolumeRows(t *testing.T) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteMany}
	volume := &corev1.PersistentVolume{
		ObjectMeta: createdAgo("v", time.Hour),
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, StorageClassName: "fast", VolumeMode: ptr(corev1.PersistentVolumeBlock),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, VolumeAttributesClassName: ptr("gold"),
			ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: "c"},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound, Reason: "why"},
	}
	going := volume.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: epoch}
	going.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": "old"}
	bound := &corev1.PersistentVolumeClaim{
		ObjectMeta: createdAgo("c", time.Hour),
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: ptr("fast")},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size, AccessModes: modes},
	}
	pending := bound.DeepCopy()
	pending.Spec.VolumeName, pending.Status.Phase = "", corev1.ClaimPending
	runRows(t, []rowTest{
		{"volume", volume, []any{"v", "8Gi", "RWO,RWX", "Retain", "Bound", "ns/c", "fast", "gold", "why", "60m", "Block"}},
		{"volume going", going, []any{"v", "8Gi", "RWO,RWX", "Retain", "Terminating", "ns/c", "old", "gold", "why", "60m", "Block"}},
		{"volume empty", &corev1.PersistentVolume{}, []any{"", "0", "", "", "", "", "", columns.Unset, "", columns.Unknown, columns.Unset}},
		{"claim", bound, []any{"c", "Bound", "v", "8Gi", "RWO,RWX", "fast", columns.Unset, "60m", columns.Unset}},
		{"claim pending", pending, []any{"c", "Pending", "", "", "", "fast", columns.Unset, "60m", columns.Unset}},
	})
}

func TestEventRows(t *testing.T) {
	old := &corev1.Event{
		ObjectMeta: createdAgo("e.1", time.Hour), FirstTimestamp: ago(time.Hour), LastTimestamp: ago(time.Minute), Count: 5,
		Type: "Warning", Reason: "BackOff", Message: " restarting\n",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-0", FieldPath: "spec.containers{web}"},
		Source:         corev1.EventSource{Component: "kubelet", Host: "node-1"},
	}
	single := &corev1.Event{
		ObjectMeta: createdAgo("e.2", time.Hour), EventTime: metav1.MicroTime(ago(time.Minute)),
		ReportingController: "scheduler", Type: "Normal", Reason: "Scheduled", InvolvedObject: corev1.ObjectReference{Kind: "Node"},
	}
	series := &eventsv1.Event{
		ObjectMeta: createdAgo("e.3", time.Hour), EventTime: metav1.MicroTime(ago(time.Hour)),
		Series:              &eventsv1.EventSeries{Count: 9, LastObservedTime: metav1.MicroTime(ago(time.Second))},
		ReportingController: "scheduler", ReportingInstance: "s-1", Type: "Normal", Reason: "Scheduled", Note: "to n1",
		Regarding: corev1.ObjectReference{Kind: "Pod", Name: "p"},
	}
	runRows(t, []rowTest{
		{"old", old, []any{
			"60s", "Warning", "BackOff", "pod/web-0", "spec.containers{web}", "kubelet, node-1", "restarting", "60m", int64(5), "e.1",
		}},
		{"single", single, []any{"60s", "Normal", "Scheduled", "node", "", "scheduler", "", "60s", int64(1), "e.2"}},
		{"series", series, []any{"1s", "Normal", "Scheduled", "pod/p", "", "scheduler, s-1", "to n1", "60m", int64(9), "e.3"}},
	})
}

func TestSmallCoreRows(t *testing.T) {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	template.Spec.Containers = []corev1.Container{{Name: "a", Image: "img:1"}, {Name: "b", Image: "img:2"}}
	addresses := []corev1.EndpointAddress{{IP: "10.0.0.1"}, {IP: "fd00::2"}}
	runRows(t, []rowTest{
		{"namespace", &corev1.Namespace{ObjectMeta: createdAgo("n", time.Hour), Status: corev1.NamespaceStatus{Phase: "Active"}},
			[]any{"n", "Active", "60m"}},
		{"config map", &corev1.ConfigMap{
			ObjectMeta: createdAgo("m", time.Hour), Data: map[string]string{"a": "", "b": ""}, BinaryData: map[string][]byte{"c": nil},
		}, []any{"m", int64(3), "60m"}},
		{"secret", &corev1.Secret{ObjectMeta: createdAgo("s", time.Hour), Type: "Opaque", Data: map[string][]byte{"a": nil}},
			[]any{"s", "Opaque", int64(1), "60m"}},
		{"service account", &corev1.ServiceAccount{ObjectMeta: createdAgo("a", time.Hour), Secrets: make([]corev1.ObjectReference, 2)},
			[]any{"a", "60m"}},
		{"endpoints", &corev1.Endpoints{ObjectMeta: createdAgo("e", time.Hour), Subsets: []corev1.EndpointSubset{
			{Addresses: addresses, Ports: []corev1.EndpointPort{{Port: 80}, {Port: 443}}}, {Addresses: addresses},
		}}, []any{"e", "10.0.0.1:80,[fd00::2]:80,10.0.0.1:443 + 3 more...", "60m"}},
		{"no endpoints", &corev1.Endpoints{ObjectMeta: createdAgo("e", time.Hour)}, []any{"e", columns.None, "60m"}},
		{"endpoints without ports", &corev1.Endpoints{ObjectMeta: createdAgo("e", time.Hour), Subsets: []corev1.EndpointSubset{
			{Addresses: addresses},
		}}, []any{"e", "10.0.0.1,fd00::2", "60m"}},
		{"quota", &corev1.ResourceQuota{ObjectMeta: createdAgo("q", time.Hour), Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"pods": resource.MustParse("10"), "limits.cpu": resource.MustParse("2"), "cpu": resource.MustParse("1")},
			Used: corev1.ResourceList{"pods": resource.MustParse("3"), "limits.cpu": resource.MustParse("500m")},
		}}, []any{"q", "cpu: 0/1, pods: 3/10", "limits.cpu: 500m/2", "60m"}},
		{"limit range", &corev1.LimitRange{ObjectMeta: createdAgo("l", time.Hour)}, []any{"l", "2026-01-02T02:04:05Z"}},
		{"template", &corev1.PodTemplate{ObjectMeta: createdAgo("t", time.Hour), Template: template},
			[]any{"t", "a,b", "img:1,img:2", "app=web"}},
		{"replication controller", &corev1.ReplicationController{
			ObjectMeta: createdAgo("rc", time.Hour),
			Spec: corev1.ReplicationControllerSpec{
				Replicas: ptr(int32(3)), Template: &template, Selector: map[string]string{"app": "web"},
			},
			Status: corev1.ReplicationControllerStatus{Replicas: 2, ReadyReplicas: 1},
		}, []any{"rc", int64(3), int64(2), int64(1), "60m", "a,b", "img:1,img:2", "app=web"}},
		{"replication controller without template", &corev1.ReplicationController{},
			[]any{"", int64(1), int64(0), int64(0), columns.Unknown, "", "", columns.None}},
		{"component healthy", &corev1.ComponentStatus{ObjectMeta: createdAgo("etcd-0", 0), Conditions: []corev1.ComponentCondition{
			{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: "ok"},
		}}, []any{"etcd-0", "Healthy", "ok", ""}},
		{"component unhealthy", &corev1.ComponentStatus{ObjectMeta: createdAgo("etcd-0", 0), Conditions: []corev1.ComponentCondition{
			{Type: corev1.ComponentHealthy, Status: corev1.ConditionFalse, Error: "refused"},
		}}, []any{"etcd-0", "Unhealthy", "", "refused"}},
	})
}
