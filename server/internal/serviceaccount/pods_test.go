package serviceaccount

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

func TestPodGetsAccountAndToken(t *testing.T) {
	f := newFixture(t)
	f.create("serviceaccounts", &corev1.ServiceAccount{
		ObjectMeta: named("puller"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
	})
	f.create("serviceaccounts", &corev1.ServiceAccount{ObjectMeta: named("quiet"), AutomountServiceAccountToken: new(false)})
	for name, test := range map[string]struct {
		change  func(*corev1.Pod)
		account string
		mounts  int // of the token, over both containers
		pulls   int
	}{
		"plain":           {func(*corev1.Pod) {}, "default", 2, 0},
		"by name":         {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "puller" }, "puller", 2, 1},
		"by its old name": {func(p *corev1.Pod) { p.Spec.DeprecatedServiceAccount = "puller" }, "puller", 2, 1},
		"secret of its own": {func(p *corev1.Pod) {
			p.Spec.ServiceAccountName = "puller"
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}
		}, "puller", 2, 2},
		"pod wants none":     {func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(false) }, "default", 0, 0},
		"account wants none": {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "quiet" }, "quiet", 0, 0},
		"pod insists": {func(p *corev1.Pod) {
			p.Spec.ServiceAccountName, p.Spec.AutomountServiceAccountToken = "quiet", new(true)
		}, "quiet", 2, 0},
		"place is taken": {func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "mine", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: mountPath}}
		}, "default", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(strings.ReplaceAll(name, " ", "-"))
			test.change(pod)
			spec := f.create("pods", pod).(*corev1.Pod).Spec
			mounts, volumes := 0, 0
			for _, c := range append(spec.Containers, spec.InitContainers...) {
				for _, m := range c.VolumeMounts {
					if m.MountPath == mountPath && m.ReadOnly && strings.HasPrefix(m.Name, volumePrefix) {
						mounts++
					}
				}
			}
			for _, v := range spec.Volumes {
				if strings.HasPrefix(v.Name, volumePrefix) && v.Projected != nil && len(v.Projected.Sources) == 3 {
					volumes++
				}
			}
			if spec.ServiceAccountName != test.account || spec.DeprecatedServiceAccount != test.account || mounts != test.mounts ||
				len(spec.ImagePullSecrets) != test.pulls || (volumes == 1) != (test.mounts > 0) {
				t.Errorf("%+v", spec)
			}
		})
	}
}

func TestPodsThatAreRefused(t *testing.T) {
	f := newFixture(t)
	mirror := func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		p.Spec.NodeName = "n"
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		says   string
	}{
		"no such account": {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "missing" },
			`error looking up service account ns/missing: serviceaccount "missing" not found`},
		"mirror with an account": {func(p *corev1.Pod) { mirror(p); p.Spec.ServiceAccountName = "default" }, "a mirror pod may not reference service accounts"},
		"mirror with a token": {func(p *corev1.Pod) { mirror(p); p.Spec.Volumes = []corev1.Volume{tokenVolume("t")} },
			"a mirror pod may not use ServiceAccountToken volume projections"},
		"mirror with a secret": {func(p *corev1.Pod) { mirror(p); p.Spec.Volumes = []corev1.Volume{secretVolume("s")} }, "a mirror pod may not reference secrets"},
		"mirror that pulls with a secret": {func(p *corev1.Pod) { mirror(p); p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} },
			"a mirror pod may not reference secrets"},
	} {
		pod := newPod("p")
		test.change(pod)
		_, err := f.of("pods").Create(t.Context(), "ns", pod, registry.WriteOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pod := newPod("mirror")
	mirror(pod)
	if spec := f.create("pods", pod).(*corev1.Pod).Spec; spec.ServiceAccountName != "" || len(spec.Volumes) != 0 {
		t.Errorf("a mirror pod was given %+v", spec)
	}
}

// TestPodsThatHooksChange: what later hooks, such as webhooks, make of a pod is checked, too.
func TestPodsThatHooksChange(t *testing.T) {
	f := newFixture(t)
	f.create("serviceaccounts", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "strict", Annotations: map[string]string{enforceMountable: "true"}}})
	account := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = name, name }
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		says   string
	}{
		"no account": {func(p *corev1.Pod) {
			account("")(p)
			p.Spec.Volumes, p.Spec.Containers[0].VolumeMounts, p.Spec.InitContainers = nil, nil, nil // with the token of the account
		}, `pods "p" is forbidden: no service account specified for pod ns/p`},
		"no such account": {account("missing"), `pods "p" is forbidden: error looking up service account ns/missing: serviceaccount "missing" not found`},
		"a mirror pod": {func(p *corev1.Pod) {
			p.Annotations, p.Spec.NodeName = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, "n"
		}, `pods "p" is forbidden: a mirror pod may not reference service accounts`},
		"a secret": {func(p *corev1.Pod) {
			account("strict")(p)
			p.Spec.Volumes = append(p.Spec.Volumes, secretVolume("s"))
		}, `pods "p" is forbidden: volume with secret.secretName="s" is not allowed because service account strict does not reference that secret`},
	} {
		f.change = test.change
		_, err := f.of("pods").Create(t.Context(), "ns", newPod("p"), registry.WriteOptions{})
		if !apierrors.IsForbidden(err) || err.Error() != test.says {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEphemeralContainersWithoutAccount: a namespace that ends gets no new account for them.
func TestEphemeralContainersWithoutAccount(t *testing.T) {
	f := newFixture(t)
	f.create("pods", newPod("p"))
	f.remove("namespaces", "ns")
	f.remove("serviceaccounts", DefaultName)
	_, err := f.of("pods").UpdateSubresource(t.Context(), "ns", "p", "ephemeralcontainers", func(o resource.Object) (resource.Object, error) {
		pod := o.DeepCopyObject().(*corev1.Pod)
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "i"}}}
		return pod, nil
	}, registry.UpdateOptions{})
	const says = `error looking up service account ns/default: serviceaccount "default" not found`
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v", err)
	}
}

func secretVolume(name string) corev1.Volume {
	return corev1.Volume{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}
}
