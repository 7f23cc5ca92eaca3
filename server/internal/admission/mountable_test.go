package admission_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// withAccounts starts a server with the accounts strict, which enforces what it lists, and loose, which does not.
func withAccounts(t *testing.T) *cluster {
	t.Helper()
	c := start(t)
	for name, enforce := range map[string]string{"strict": "true", "loose": "false"} {
		must[*corev1.ServiceAccount](t, name)(create(c, &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kubernetes.io/enforce-mountable-secrets": enforce}},
			Secrets:    []corev1.ObjectReference{{Name: "listed"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "listed"}},
		}))
	}
	return c
}

func envOf(secret string) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "V", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "k",
	}}}}
}

func envFromOf(secret string) []corev1.EnvFromSource {
	return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}
}

// TestMountableSecrets: pods of an account that enforces it refer only to the secrets that it lists.
func TestMountableSecrets(t *testing.T) {
	c := withAccounts(t)
	const unlisted = `secret.secretName="other" is not allowed because service account strict does not reference that secret`
	for name, test := range map[string]struct {
		refer func(s *corev1.PodSpec, secret string)
		says  string
	}{
		"volume": {func(s *corev1.PodSpec, secret string) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}
		}, "volume with " + unlisted},
		"env":     {func(s *corev1.PodSpec, secret string) { s.Containers[0].Env = envOf(secret) }, "container c with envVar V referencing " + unlisted},
		"envfrom": {func(s *corev1.PodSpec, secret string) { s.Containers[0].EnvFrom = envFromOf(secret) }, "container c with envFrom referencing " + unlisted},
		"init-env": {func(s *corev1.PodSpec, secret string) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "i", Env: envOf(secret)}}
		}, "init container i with envVar V referencing " + unlisted},
		"init-envfrom": {func(s *corev1.PodSpec, secret string) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "i", EnvFrom: envFromOf(secret)}}
		}, "init container i with envFrom referencing " + unlisted},
		"pull": {func(s *corev1.PodSpec, secret string) {
			s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "listed"}, {Name: secret}}
		}, `imagePullSecrets[1].name="other" is not allowed because service account strict does not reference that imagePullSecret`},
	} {
		pod := func(account, secret string) *corev1.Pod {
			return newPod(name+"-"+account+"-"+secret, func(s *corev1.PodSpec) {
				s.ServiceAccountName = account
				test.refer(s, secret)
			})
		}
		must[*corev1.Pod](t, name)(create(c, pod("strict", "listed")))
		must[*corev1.Pod](t, name)(create(c, pod("loose", "other")))
		_, err := create(c, pod("strict", "other"))
		mustSay(t, name, err, `pods "`+name+`-strict-other" is forbidden: `+test.says)
	}
}

// TestMountableSecretsOfEphemeralContainers: they are held to the same. (kube-apiserver refuses them with a 500.)
func TestMountableSecretsOfEphemeralContainers(t *testing.T) {
	c := withAccounts(t)
	const unlisted = `referencing secret.secretName="other" is not allowed because service account strict does not reference that secret`
	for name, test := range map[string]struct {
		account, secret string
		fromAll         bool
		says            string // empty: it is added
	}{
		"env":         {"strict", "other", false, "ephemeral container d with envVar V " + unlisted},
		"envfrom":     {"strict", "other", true, "ephemeral container d with envFrom " + unlisted},
		"listed":      {"strict", "listed", true, ""},
		"not-limited": {"loose", "other", false, ""},
	} {
		pod := must[*corev1.Pod](t, name)(create(c, newPod(name, func(s *corev1.PodSpec) { s.ServiceAccountName = test.account })))
		debugger := corev1.EphemeralContainerCommon{Name: "d", Image: "i", Env: envOf(test.secret)}
		if test.fromAll {
			debugger.Env, debugger.EnvFrom = nil, envFromOf(test.secret)
		}
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: debugger}}
		err := client.For[*corev1.Pod](c.Client).Namespace("default").SubResource("ephemeralcontainers").Update(t.Context(), name, pod, metav1.UpdateOptions{})
		var answer apierrors.APIStatus
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.says != "" && (!errors.As(err, &answer) || answer.Status().Code != 403 || !strings.Contains(answer.Status().Message, test.says)):
			t.Errorf("%s: %v, want a 403 with %q", name, err, test.says)
		}
	}
}
