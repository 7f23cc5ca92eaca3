package admission_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// setRange gives the namespace a LimitRange of these items, also in the place of the one of that name.
func setRange(c *cluster, name string, items ...corev1.LimitRangeItem) {
	c.t.Helper()
	r := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.LimitRangeSpec{Limits: items}}
	_, err := create(c, r)
	if apierrors.IsAlreadyExists(err) {
		_, err = client.For[*corev1.LimitRange](c.Client).Namespace("default").Update(c.t.Context(), r, metav1.UpdateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// mustForbid wants a 403 with exactly this text.
func mustForbid(t *testing.T, what string, err error, text string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || err.Error() != text {
		t.Errorf("%s: %v, want a 403: %s", what, err, text)
	}
}

// TestLimitRangesOfResizes: a resize stays within the ranges and gets their defaults, as a new pod does. What it
// cannot change, such as the annotation about them, stays as it is.
func TestLimitRangesOfResizes(t *testing.T) {
	c := start(t)
	pods := client.For[*corev1.Pod](c.Client).Namespace("default")
	with := func(requests, limits corev1.ResourceList) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
		}
	}
	plain := must[*corev1.Pod](t, "plain")(create(c, newPod("plain", with(cpu("100m"), nil))))
	large := must[*corev1.Pod](t, "large")(create(c, newPod("large", with(cpu("100m"), cpu("2")))))
	setRange(c, "r", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: cpu("50m"), Max: cpu("1"), Default: cpu("500m")})

	mustForbid(t, "above the range", resize(c, plain, with(cpu("100m"), cpu("1100m"))),
		`pods "plain" is forbidden: maximum cpu usage per Container is 1, but limit is 1100m`)
	mustForbid(t, "below the range", resize(c, plain, with(cpu("10m"), nil)),
		`pods "plain" is forbidden: minimum cpu usage per Container is 50m, but request is 10m`)
	mustForbid(t, "a pod that is older than the range", resize(c, large, with(cpu("200m"), cpu("2"))),
		`pods "large" is forbidden: maximum cpu usage per Container is 1, but limit is 2`)
	if err := resize(c, plain, with(cpu("200m"), nil)); err != nil {
		t.Errorf("within the range: %v", err)
	}
	got := must[*corev1.Pod](t, "plain")(pods.Get(t.Context(), "plain", metav1.GetOptions{}))
	if r := got.Spec.Containers[0].Resources; r.Requests.Cpu().String() != "200m" || r.Limits.Cpu().String() != "500m" || len(got.Annotations) != 0 {
		t.Errorf("resized: %+v, annotations %v", r, got.Annotations)
	}
	if err := resize(c, got, with(cpu("300m"), nil)); err != nil {
		t.Errorf("without the limit, which has a default: %v", err)
	}
	large.Labels = map[string]string{"a": "b"}
	if _, err := pods.Update(t.Context(), large, metav1.UpdateOptions{}); err != nil {
		t.Errorf("another change: %v", err)
	}
}

// TestLimitRangesOfPods: a pod as a whole has what its containers have at the same time, sidecars included, or the
// cpu and memory that it states for itself.
func TestLimitRangesOfPods(t *testing.T) {
	c := start(t)
	list := func(name corev1.ResourceName, amount string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(amount)}
	}
	container := func(name string, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Name: name, Image: "i", Resources: corev1.ResourceRequirements{Limits: limits}}
	}
	sidecar := func(name string, limits corev1.ResourceList) corev1.Container {
		made := container(name, limits)
		made.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		return made
	}
	most := func(amounts corev1.ResourceList) corev1.LimitRangeItem { return corev1.LimitRangeItem{Max: amounts} }
	memory := corev1.ResourceMemory
	pages := corev1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi"), "cpu": resource.MustParse("1")}
	small := []corev1.Container{container("c", cpu("500m"))}
	for name, test := range map[string]struct {
		limit            corev1.LimitRangeItem
		containers, init []corev1.Container
		own              *corev1.ResourceRequirements
		says             string // empty: it is created
	}{
		"sidecars": {
			limit: most(cpu("2")), containers: small, init: []corev1.Container{sidecar("s", cpu("1")), sidecar("t", cpu("1"))},
			says: "maximum cpu usage per Pod is 2, but limit is 2500m",
		},
		"init-beside-sidecar": {
			limit: most(cpu("2")), containers: small, init: []corev1.Container{sidecar("s", cpu("1")), container("n", cpu("1200m"))},
			says: "maximum cpu usage per Pod is 2, but limit is 2200m",
		},
		"init-before-sidecar": {limit: most(cpu("2")), containers: small, init: []corev1.Container{container("n", cpu("2")), sidecar("s", cpu("1"))}},
		"formats": {
			limit: most(list(memory, "1Gi")), containers: []corev1.Container{container("c", list(memory, "1Mi"))},
			init: []corev1.Container{sidecar("s", list(memory, "1Gi")), container("n", list(memory, "1024M"))},
			says: "maximum memory usage per Pod is 1Gi, but limit is 2097741824",
		},
		"more-of-its-own": {
			limit: most(cpu("2")), containers: small, own: &corev1.ResourceRequirements{Limits: cpu("3")},
			says: "maximum cpu usage per Pod is 2, but limit is 3",
		},
		"requests-of-its-own": {
			limit: corev1.LimitRangeItem{Min: cpu("2")}, containers: small, own: &corev1.ResourceRequirements{Requests: cpu("2"), Limits: cpu("4")},
		},
		"less-of-its-own": {
			limit: most(cpu("2")), own: &corev1.ResourceRequirements{Limits: cpu("2"), Requests: cpu("1")}, containers: []corev1.Container{
				{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: cpu("500m"), Limits: cpu("1500m")}},
				{Name: "d", Image: "i", Resources: corev1.ResourceRequirements{Requests: cpu("500m"), Limits: cpu("1500m")}},
			},
		},
		"huge-pages-of-its-own": { // are those of the containers, as in Kubernetes
			limit: most(list("hugepages-2Mi", "4Mi")), containers: []corev1.Container{container("c", pages)},
			own: &corev1.ResourceRequirements{Limits: list("hugepages-2Mi", "8Mi")},
		},
	} {
		test.limit.Type = corev1.LimitTypePod
		setRange(c, "r", test.limit)
		_, err := create(c, newPod(name, func(s *corev1.PodSpec) {
			s.Containers, s.InitContainers, s.Resources = test.containers, test.init, test.own
		}))
		switch {
		case test.says != "":
			mustForbid(t, name, err, fmt.Sprintf("pods %q is forbidden: %s", name, test.says))
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLimitRangesLeaveDeletedObjectsAlone: what is being deleted can be changed also outside of a range, so that it can
// lose its finalizers.
func TestLimitRangesLeaveDeletedObjectsAlone(t *testing.T) {
	c := start(t)
	kept := []string{"example.com/kept"}
	claims, pods := client.For[*corev1.PersistentVolumeClaim](c.Client).Namespace("default"), client.For[*corev1.Pod](c.Client).Namespace("default")
	claim := must[*corev1.PersistentVolumeClaim](t, "claim")(create(c, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "big", Finalizers: kept}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("2Gi")}},
		},
	}))
	sent := newPod("p", request("100m", "10Mi"))
	sent.Finalizers = kept
	pod := must[*corev1.Pod](t, "pod")(create(c, sent))
	setRange(c, "r", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpu("1")},
		corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{"storage": resource.MustParse("1Gi")}})

	larger := func(s *corev1.PodSpec) { s.Containers[0].Resources.Limits = cpu("2") }
	claim.Labels = map[string]string{"a": "b"}
	_, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{})
	mustForbid(t, "a change of a claim", err,
		`persistentvolumeclaims "big" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi`)
	mustForbid(t, "a resize", resize(c, pod, larger), `pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2`)
	if err := claims.Delete(t.Context(), claim.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	claim = must[*corev1.PersistentVolumeClaim](t, "the deleted claim")(claims.Get(t.Context(), claim.Name, metav1.GetOptions{}))
	claim.Finalizers = nil
	if _, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a deleted claim: %v", err)
	}
	pod = must[*corev1.Pod](t, "the deleted pod")(pods.Get(t.Context(), pod.Name, metav1.GetOptions{}))
	if err := resize(c, pod, larger); err != nil {
		t.Errorf("a deleted pod: %v", err)
	}
}

// TestLimitRangeRatios: limits and requests are compared in thousandths, and what is missing is named.
func TestLimitRangeRatios(t *testing.T) {
	c := start(t)
	setRange(c, "r", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: cpu("7")})
	const prefix = "cpu max limit to request ratio per Container is 7, but "
	for name, test := range map[string]struct {
		requests, limits corev1.ResourceList
		says             string
	}{
		"exactly":    {cpu("20m"), cpu("140m"), ""},
		"more":       {cpu("20m"), cpu("141m"), "provided ratio is 7.050000"},
		"no-limit":   {cpu("20m"), nil, "no limit is specified or limit is 0"},
		"no-request": {cpu("0"), cpu("1"), "no request is specified or request is 0"},
	} {
		_, err := create(c, newPod(name, func(s *corev1.PodSpec) {
			s.Containers[0].Resources = corev1.ResourceRequirements{Requests: test.requests, Limits: test.limits}
		}))
		switch {
		case test.says != "":
			mustForbid(t, name, err, fmt.Sprintf("pods %q is forbidden: %s%s", name, prefix, test.says))
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSeveralLimitRanges: a refusal names all faults against the first range that has any, and no others.
func TestSeveralLimitRanges(t *testing.T) {
	c := start(t)
	setRange(c, "a", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpu("4")})
	setRange(c, "b", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpu("1")}, corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: cpu("2")})
	setRange(c, "c", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: cpu("500m")})
	_, err := create(c, newPod("p", func(s *corev1.PodSpec) { s.Containers[0].Resources.Limits = cpu("3") }))
	mustForbid(t, "outside of two", err,
		`pods "p" is forbidden: [maximum cpu usage per Container is 1, but limit is 3, maximum cpu usage per Pod is 2, but limit is 3]`)
}

// TestManyLimitsOfManyContainers: a range of thousands of amounts is not filled into thousands of containers.
func TestManyLimitsOfManyContainers(t *testing.T) {
	c := start(t)
	amounts := corev1.ResourceList{}
	for i := range 2_000 {
		amounts[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
	}
	_, err := create(c, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "many"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: amounts, DefaultRequest: amounts},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if made, err := create(c, newPod("small")); err != nil || len(made.Spec.Containers[0].Resources.Limits) != len(amounts) {
		t.Errorf("one container: %v", err)
	}
	_, err = create(c, newPod("large", func(s *corev1.PodSpec) {
		for i := range 2_000 {
			another := s.Containers[0]
			another.Name = fmt.Sprint("c", i)
			s.Containers = append(s.Containers, another)
		}
	}))
	mustSay(t, "many containers", err, "the LimitRange many has 4000 amounts, and the pod 2001 containers, for each of which they are: at most 200000 together")
}
