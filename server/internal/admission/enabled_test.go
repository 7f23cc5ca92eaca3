package admission_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/admission"
)

// startWith is start with plugins that are off by default.
func startWith(t *testing.T, plugins ...string) *cluster {
	t.Helper()
	s := levelwiretest.Start(t, func(c *server.Config) { c.EnableAdmissionPlugins = plugins })
	return &cluster{s.Client(client.Options{}), t}
}

func must[T any](t *testing.T, what string) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return v
	}
}

// TestPodRules: each plugin beside a server without it.
func TestPodRules(t *testing.T) {
	without, with := start(t), startWith(t, admission.AlwaysPullImages, admission.ExtendedResourceToleration, admission.LimitPodHardAntiAffinityTopology, admission.PodNodeSelector)
	gpu := func(s *corev1.PodSpec) {
		s.Containers[0].ImagePullPolicy = corev1.PullNever
		s.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	}
	far := func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: &metav1.LabelSelector{}, TopologyKey: corev1.LabelTopologyZone},
		}}}
	}
	for c, on := range map[*cluster]bool{without: false, with: true} {
		namespaces := client.For[*corev1.Namespace](c.Client)
		namespace := must[*corev1.Namespace](t, "namespace")(namespaces.Get(t.Context(), "default", metav1.GetOptions{}))
		namespace.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "disk=ssd"}
		must[*corev1.Namespace](t, "namespace")(namespaces.Update(t.Context(), namespace, metav1.UpdateOptions{}))
		pod := must[*corev1.Pod](t, "pod")(create(c, newPod("gpu", gpu)))
		if pulls := pod.Spec.Containers[0].ImagePullPolicy == corev1.PullAlways; pulls != on {
			t.Errorf("AlwaysPullImages is %v: %s", on, pod.Spec.Containers[0].ImagePullPolicy)
		}
		tolerated := false
		for _, toleration := range pod.Spec.Tolerations {
			tolerated = tolerated || toleration.Key == "example.com/gpu" && toleration.Operator == corev1.TolerationOpExists
		}
		if tolerated != on {
			t.Errorf("ExtendedResourceToleration is %v: %v", on, pod.Spec.Tolerations)
		}
		if selected := pod.Spec.NodeSelector["disk"] == "ssd"; selected != on {
			t.Errorf("PodNodeSelector is %v: %v", on, pod.Spec.NodeSelector)
		}
		if _, err := create(c, newPod("far", far)); apierrors.IsForbidden(err) != on {
			t.Errorf("LimitPodHardAntiAffinityTopology is %v: %v", on, err)
		}
	}
	_, err := create(with, newPod("other", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "hdd"} }))
	mustSay(t, "another disk", err, "pod node label selector conflicts with its namespace node label selector")
}

func TestRuntimeClass(t *testing.T) {
	c := start(t)
	overhead := corev1.ResourceList{"cpu": resource.MustParse("100m")}
	createCluster(c, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Handler: "vm", Overhead: &nodev1.Overhead{PodFixed: overhead},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"runtime": "vm"}, Tolerations: []corev1.Toleration{{Key: "vm", Operator: corev1.TolerationOpExists}}},
	})
	class := func(name string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.RuntimeClassName = &name }
	}
	pod := must[*corev1.Pod](t, "pod")(create(c, newPod("a", class("vm"))))
	if cpu := pod.Spec.Overhead["cpu"]; cpu.String() != "100m" || pod.Spec.NodeSelector["runtime"] != "vm" ||
		!slices.ContainsFunc(pod.Spec.Tolerations, func(toleration corev1.Toleration) bool { return toleration.Key == "vm" }) {
		t.Errorf("overhead %v, nodes %v, tolerations %v", pod.Spec.Overhead, pod.Spec.NodeSelector, pod.Spec.Tolerations)
	}
	createCluster(c, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "stays"}, Handler: "vm", Scheduling: &nodev1.Scheduling{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
	})
	stays := must[*corev1.Pod](t, "pod")(create(c, newPod("stays", class("stays"))))
	if len(stays.Spec.Tolerations) != 1 || stays.Spec.Tolerations[0].TolerationSeconds != nil {
		t.Errorf("a pod that tolerates everything for ever has %+v", stays.Spec.Tolerations)
	}
	_, err := create(c, newPod("b", class("none")))
	mustSay(t, "a class that does not exist", err, `pod rejected: RuntimeClass "none" not found`)
	_, err = create(c, newPod("c", func(s *corev1.PodSpec) { s.Overhead = overhead }))
	mustSay(t, "an overhead without a class", err, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
	_, err = create(c, newPod("d", class("vm"), func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"runtime": "other"} }))
	mustSay(t, "another node", err, "conflict: runtimeClass.scheduling.nodeSelector[runtime] = vm; pod.spec.nodeSelector[runtime] = other")
}

func TestDefaultIngressClass(t *testing.T) {
	c := start(t)
	createCluster(c, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{
		Name: "nginx", Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"},
	}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/nginx"}})
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "i"}, Spec: networkingv1.IngressSpec{
		DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}},
	}}
	made := must[*networkingv1.Ingress](t, "ingress")(create(c, ingress))
	if made.Spec.IngressClassName == nil || *made.Spec.IngressClassName != "nginx" {
		t.Errorf("the class is %v", made.Spec.IngressClassName)
	}
}

func TestExternalIPs(t *testing.T) {
	c := startWith(t, admission.DenyServiceExternalIPs)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 80}}, ExternalIPs: []string{"192.0.2.1"},
	}}
	_, err := create(c, service)
	mustSay(t, "external address", err, "Use of external IPs is denied by admission control")
}

// TestClaimResize: only bound claims of classes that allow it grow.
func TestClaimResize(t *testing.T) {
	c := start(t)
	createCluster(c, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, Provisioner: "example.com/disk"})
	createCluster(c, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows"}, Provisioner: "example.com/disk", AllowVolumeExpansion: new(true)})
	claims := client.For[*corev1.PersistentVolumeClaim](c.Client).Namespace("default")
	grow := func(class string, phase corev1.PersistentVolumeClaimPhase) error {
		claim := must[*corev1.PersistentVolumeClaim](t, "claim")(create(c, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
			},
		}))
		claim.Status.Phase = phase
		claim = must[*corev1.PersistentVolumeClaim](t, "status")(claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}))
		claim.Spec.Resources.Requests["storage"] = resource.MustParse("2Gi")
		_, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{})
		return err
	}
	if err := grow("grows", corev1.ClaimPending); err == nil {
		t.Error("a pending claim grew")
	}
	mustSay(t, "a fixed class", grow("fixed", corev1.ClaimBound), "the storageclass that provisions the pvc must support resize")
	if err := grow("grows", corev1.ClaimBound); err != nil {
		t.Errorf("a bound claim of a class that grows: %v", err)
	}
}

func TestNamespaceAutoProvision(t *testing.T) {
	c := startWith(t, admission.NamespaceAutoProvision)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	if _, err := client.For[*corev1.ConfigMap](c.Client).Namespace("new").Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	must[*corev1.Namespace](t, "namespace")(client.For[*corev1.Namespace](c.Client).Get(t.Context(), "new", metav1.GetOptions{}))
}

// TestDefaultsOfKubernetesCanBeNamed: nobody is refused who writes out, or switches off, what
// kube-apiserver 1.37 enables by default.
func TestDefaultsOfKubernetesCanBeNamed(t *testing.T) {
	defaults := []string{
		"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "DefaultStorageClass", "PersistentVolumeClaimResize", "DefaultTolerationSeconds",
		"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook", "ResourceQuota", "StorageObjectInUseProtection", "PodGroupProtection", "Priority",
		"TaintNodesByCondition", "RuntimeClass", "CertificateApproval", "CertificateSigning", "ClusterTrustBundleAttest", "CertificateSubjectRestriction",
		"DefaultIngressClass", "PodSecurity", "PodTopologyLabels", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy", "NodeDeclaredFeatureValidator",
		"PodResizeValidator",
	}
	if err := admission.CheckEnabled(defaults); err != nil {
		t.Errorf("enabled: %v", err)
	}
	if err := admission.CheckNames(append(defaults, "ImagePolicyWebhook")); err != nil {
		t.Errorf("disabled: %v", err)
	}
}

// TestEnabling: a plugin that does not exist here, or needs a configuration, cannot be enabled
// silently.
func TestEnabling(t *testing.T) {
	for name, problem := range map[string]string{
		"ImagePolicyWebhook": "does not exist here", "Nonsense": "is no admission plugin", "EventRateLimit": "write its limits to --admission-control-config-file",
	} {
		_, err := server.Listen(server.Config{DataDir: t.TempDir(), EnableAdmissionPlugins: []string{name}})
		if err == nil || !strings.Contains(err.Error(), problem) || !strings.Contains(err.Error(), "--enable-admission-plugins") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
