package admission_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/admission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a server with everything that is on by default, or without some.
type cluster struct {
	*client.Client
	t *testing.T
}

func start(t *testing.T, without ...string) *cluster {
	t.Helper()
	s := levelwiretest.Start(t, func(c *server.Config) { c.DisableAdmissionPlugins = without })
	return &cluster{s.Client(client.Options{}), t}
}

func create[T client.Object](c *cluster, obj T) (T, error) {
	return client.For[T](c.Client).Namespace("default").Create(c.t.Context(), obj, metav1.CreateOptions{})
}

func createCluster[T client.Object](c *cluster, obj T) {
	c.t.Helper()
	if _, err := client.For[T](c.Client).Create(c.t.Context(), obj, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func newPod(name string, change ...func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for _, f := range change {
		f(&pod.Spec)
	}
	return pod
}

func mustSay(t *testing.T, what string, err error, text string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want a 403 with %q", what, err, text)
	}
}

func TestPriority(t *testing.T) {
	c := start(t)
	never := corev1.PreemptNever
	createCluster(c, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 7, PreemptionPolicy: &never})
	check := func(name string, pod *corev1.Pod, class string, value int32, policy corev1.PreemptionPolicy) *corev1.Pod {
		t.Helper()
		made, err := create(c, pod)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s := made.Spec; s.PriorityClassName != class || s.Priority == nil || *s.Priority != value || s.PreemptionPolicy == nil || *s.PreemptionPolicy != policy {
			t.Errorf("%s: %s %v %v", name, s.PriorityClassName, s.Priority, s.PreemptionPolicy)
		}
		return made
	}
	made := check("none", newPod("none"), "", 0, corev1.PreemptLowerPriority)
	check("by name", newPod("named", func(s *corev1.PodSpec) { s.PriorityClassName = "low" }), "low", 7, never)
	check("the system's", newPod("system", func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" }),
		"system-node-critical", 2_000_001_000, corev1.PreemptLowerPriority)

	_, err := create(c, newPod("missing", func(s *corev1.PodSpec) { s.PriorityClassName = "nope" }))
	mustSay(t, "a class that is not there", err, "no PriorityClass with name nope was found")
	_, err = create(c, newPod("own", func(s *corev1.PodSpec) { s.Priority = new(int32(5)) }))
	mustSay(t, "a number of its own", err, "the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0")

	createCluster(c, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 3, GlobalDefault: true})
	check("default class", newPod("usual"), "usual", 3, corev1.PreemptLowerPriority)
	_, err = client.For[*schedulingv1.PriorityClass](c.Client).Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Value: 4, GlobalDefault: true}, metav1.CreateOptions{})
	mustSay(t, "a second default", err, `PriorityClass usual is already marked as default`)
	_, err = client.For[*schedulingv1.PriorityClass](c.Client).Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 3, GlobalDefault: true}, metav1.CreateOptions{})
	mustSay(t, "the default again", err, `PriorityClass usual is already marked as default`)

	// Who replaces a pod with what it once sent does not take its priority away.
	sent := newPod("none")
	sent.ResourceVersion = made.ResourceVersion
	sent.Spec.ServiceAccountName, sent.Spec.Volumes = made.Spec.ServiceAccountName, made.Spec.Volumes
	sent.Spec.Containers, sent.Labels = made.Spec.Containers, map[string]string{"a": "b"}
	replaced, err := client.For[*corev1.Pod](c.Client).Namespace("default").Update(t.Context(), sent, metav1.UpdateOptions{})
	if err != nil || *replaced.Spec.Priority != 0 || len(replaced.Spec.Tolerations) != 2 {
		t.Errorf("replaced: %+v, %v", replaced, err)
	}
}

func TestTolerations(t *testing.T) {
	c := start(t)
	own := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	for name, test := range map[string]struct {
		has  []corev1.Toleration
		want int
	}{
		"none":       {nil, 2},
		"one":        {[]corev1.Toleration{own}, 2},
		"everything": {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, 1},
		"other":      {[]corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}, 3},
	} {
		made, err := create(c, newPod(name, func(s *corev1.PodSpec) { s.Tolerations = test.has }))
		if err != nil || len(made.Spec.Tolerations) != test.want {
			t.Errorf("%s: %+v, %v", name, made.Spec.Tolerations, err)
		}
	}
}

func TestDefaultStorageClass(t *testing.T) {
	c := start(t)
	claim := func(name string, class *string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		}}
	}
	without, err := create(c, claim("before", nil))
	if err != nil || without.Spec.StorageClassName != nil {
		t.Errorf("without a default: %v, %v", without.Spec.StorageClassName, err)
	}
	createCluster(c, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Provisioner: "p"})
	createCluster(c, &storagev1.StorageClass{Provisioner: "p", ObjectMeta: metav1.ObjectMeta{
		Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
	}})
	for name, test := range map[string]struct {
		class *string
		want  string
	}{"none": {nil, "fast"}, "empty": {new(""), ""}, "other": {new("other"), "other"}} {
		made, err := create(c, claim(name, test.class))
		if err != nil || made.Spec.StorageClassName == nil || *made.Spec.StorageClassName != test.want {
			t.Errorf("%s: %v, %v", name, made.Spec.StorageClassName, err)
		}
	}
}

func TestLimitRanges(t *testing.T) {
	c := start(t)
	list := func(cpu string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(cpu)} }
	_, err := create(c, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{
			Type: corev1.LimitTypeContainer, Default: list("500m"), DefaultRequest: list("100m"), Min: list("50m"), Max: list("1"),
			MaxLimitRequestRatio: list("8"),
		},
		{Type: corev1.LimitTypePod, Max: list("1500m")},
		{Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := create(c, newPod("plain"))
	if err != nil {
		t.Fatal(err)
	}
	got := made.Spec.Containers[0].Resources
	if got.Requests.Cpu().String() != "100m" || got.Limits.Cpu().String() != "500m" ||
		made.Annotations["kubernetes.io/limit-ranger"] != "LimitRanger plugin set: cpu request for container c; cpu limit for container c" {
		t.Errorf("%+v %v", got, made.Annotations)
	}
	with := func(requests, limits string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers[0].Resources = corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
		}
	}
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		says   string
	}{
		"too-little": {with("10m", "50m"), "minimum cpu usage per Container is 50m, but request is 10m"},
		"too-much":   {with("500m", "2"), "maximum cpu usage per Container is 1, but limit is 2"},
		"ratio":      {with("100m", "1"), "cpu max limit to request ratio per Container is 8, but provided ratio is 10.0"},
		"together": {func(s *corev1.PodSpec) {
			with("900m", "900m")(s)
			s.Containers = append(s.Containers, *s.Containers[0].DeepCopy())
			s.Containers[1].Name = "d"
		}, "maximum cpu usage per Pod is 1500m, but limit is 1800m"},
	} {
		_, err := create(c, newPod(name, test.change))
		mustSay(t, name, err, test.says)
	}
	_, err = create(c, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("2Gi")}},
	}})
	mustSay(t, "a claim", err, "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi")
}

// TestEachCanBeSwitchedOff: what a plugin does is not done without it.
func TestEachCanBeSwitchedOff(t *testing.T) {
	for plugin, undone := range map[string]func(*corev1.Pod) bool{
		admission.Priority:                 func(p *corev1.Pod) bool { return p.Spec.Priority == nil },
		admission.DefaultTolerationSeconds: func(p *corev1.Pod) bool { return len(p.Spec.Tolerations) == 0 },
		admission.ServiceAccount:           func(p *corev1.Pod) bool { return p.Spec.ServiceAccountName == "" && len(p.Spec.Volumes) == 0 },
	} {
		made, err := create(start(t, plugin), newPod("p"))
		if err != nil || !undone(made) {
			t.Errorf("without %s: %+v, %v", plugin, made.Spec, err)
		}
		made, err = create(start(t), newPod("p"))
		if err != nil || undone(made) {
			t.Errorf("with %s: %+v, %v", plugin, made.Spec, err)
		}
	}
	c := start(t, admission.NamespaceLifecycle, admission.ServiceAccount)
	if _, err := client.For[*corev1.Pod](c.Client).Namespace("nowhere").Create(t.Context(), newPod("p"), metav1.CreateOptions{}); err != nil {
		t.Errorf("without NamespaceLifecycle: %v", err)
	}
	if _, err := client.For[*corev1.Pod](start(t).Client).Namespace("nowhere").Create(t.Context(), newPod("p"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("with NamespaceLifecycle: %v", err)
	}
	limited := start(t, admission.LimitRanger, admission.DefaultStorageClass)
	if _, err := create(limited, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}}); err != nil {
		t.Fatal(err)
	}
	if made, err := create(limited, newPod("p")); err != nil || len(made.Spec.Containers[0].Resources.Limits) != 0 {
		t.Errorf("without LimitRanger: %+v, %v", made, err)
	}
}

func TestNames(t *testing.T) {
	if err := admission.CheckNames([]string{"ServiceAccount", "MutatingAdmissionWebhook"}); err != nil {
		t.Error(err)
	}
	if err := admission.CheckNames([]string{"ServiceAccounts"}); err == nil || !strings.Contains(err.Error(), `"ServiceAccounts" is no admission plugin`) {
		t.Error(err)
	}
}
