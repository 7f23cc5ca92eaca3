package fieldmanager

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	k8sresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// workload is a pod as a ReplicaSet makes it, with its defaults.
func workload() *corev1.Pod {
	yes, grace := true, int64(30)
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-abcde", Namespace: "default", GenerateName: "web-", Labels: map[string]string{"app": "web", "pod-template-hash": "5d4f"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "0a9d2b9e-779e-11e7-b422-42010a8001be", Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "web", Image: "nginx:1.27", ImagePullPolicy: corev1.PullIfNotPresent,
				Env:                    []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
				Ports:                  []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
				Resources:              corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": k8sresource.MustParse("100m"), "memory": k8sresource.MustParse("64Mi")}},
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}},
				VolumeMounts:   []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets"}},
			}},
			Volumes:       []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace, DNSPolicy: corev1.DNSClusterFirst,
			SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: "default-scheduler",
		},
	}
}

// running is what a kubelet makes of it.
func running(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}},
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: true, Image: "nginx:1.27"}},
	}
	return pod
}

// BenchmarkUpdate measures what a write of a pod pays, with its type and with
// the library alone.
func BenchmarkUpdate(b *testing.B) {
	pod := workload()
	m, status := managerOf(pod, ""), managerOf(pod, "status")
	owned := pod.DeepCopy()
	owned.UID = "u"
	m.Update(b.Context(), nil, owned, "controllers")
	started := running(owned)
	status.Update(b.Context(), owned, started, "kubelet")
	unready := running(started)
	unready.Status.Conditions[1].Status = corev1.ConditionFalse
	b.Logf("%d bytes of managedFields", len(started.ManagedFields[0].FieldsV1.GetRawString())+len(started.ManagedFields[1].FieldsV1.GetRawString()))
	for _, test := range []struct {
		name      string
		m         Manager
		live, obj *corev1.Pod
		manager   string
	}{
		{"create", m, nil, pod, "controllers"},
		{"first status", status, owned, running(owned), "kubelet"},
		{"status", status, started, unready, "kubelet"},
		{"nothing", status, started, running(started), "kubelet"},
	} {
		write := func(how func(ctx context.Context, live, obj resource.Object, manager string)) func(*testing.B) {
			return func(b *testing.B) {
				b.ReportAllocs()
				before := test.obj.ManagedFields
				for b.Loop() {
					test.obj.ManagedFields = before
					if test.live == nil {
						how(b.Context(), nil, test.obj, test.manager)
					} else {
						how(b.Context(), test.live, test.obj, test.manager)
					}
				}
				test.obj.ManagedFields = before
			}
		}
		b.Run(test.name, write(test.m.Update))
		b.Run(test.name+" by the library", write(test.m.updateByLibrary))
	}
}
