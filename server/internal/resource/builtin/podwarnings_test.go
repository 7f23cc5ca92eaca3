package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
)

// TestPodWarnings: what is odd in a pod, and in the template of everything that makes pods.
func TestPodWarnings(t *testing.T) {
	const none = "a null labelSelector results in matching no pod"
	nodes := "affinity.nodeAffinity."
	for _, tt := range []struct {
		edits []string // of a pod; SPEC and META stand for where a template has them
		want  []string
	}{
		{nil, nil},
		{[]string{"SPEC.imagePullSecrets=[{name: ''}, {name: a}, {name: a}]"}, []string{`SPEC.imagePullSecrets[2].name: duplicate name "a"`, `SPEC.imagePullSecrets[0].name: invalid empty name ""`}},
		{[]string{"SPEC.hostAliases=[{ip: '2001:db8:0::1'}, {ip: '2001:db8:0::1'}]"}, []string{
			`SPEC.hostAliases[1].ip: duplicate ip "2001:db8:0::1"`,
			`SPEC.hostAliases[0].ip: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")`,
			`SPEC.hostAliases[1].ip: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")`,
		}},
		{[]string{"SPEC.dnsConfig={nameservers: ['2001:db8:0::1']}"}, []string{`SPEC.dnsConfig.nameservers[0]: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")`}},
		{[]string{"SPEC.nodeSelector={beta.kubernetes.io/os: linux, node-role.kubernetes.io/master: ''}"}, []string{
			`SPEC.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`,
			`SPEC.nodeSelector[node-role.kubernetes.io/master]: use "node-role.kubernetes.io/control-plane" instead`,
		}},
		{[]string{"SPEC.affinity={nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: beta.kubernetes.io/arch, operator: In, values: [a b]}]}]}," +
			" preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: In, values: ['-']}]}}]}}"}, []string{
			"SPEC." + nodes + `requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead`,
			"SPEC." + nodes + "preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: - is invalid, a valid label must be an empty string or consist of alphanumeric characters," +
				" '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
		}},
		{[]string{"SPEC.affinity={podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}, podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a}}]}}"}, []string{
			"SPEC.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: " + none,
			"SPEC.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: " + none,
		}},
		{[]string{"SPEC.topologySpreadConstraints=[{maxSkew: 1, topologyKey: beta.kubernetes.io/os, whenUnsatisfiable: DoNotSchedule}]"}, []string{
			`SPEC.topologySpreadConstraints[0].topologyKey: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead`, "SPEC.topologySpreadConstraints[0].labelSelector: " + none,
		}},
		{[]string{"META.annotations={scheduler.alpha.kubernetes.io/critical-pod: '', seccomp.security.alpha.kubernetes.io/pod: unconfined, container.seccomp.security.alpha.kubernetes.io/c: unconfined}"}, []string{
			`META.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead`,
			`META.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead`,
			`META.annotations[container.seccomp.security.alpha.kubernetes.io/c]: non-functional in v1.27+; use the "seccompProfile" field instead`,
		}},
		{[]string{"SPEC.volumes=[{name: a, gitRepo: {repository: r}}, {name: b, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1500m}}}}}}]"}, []string{
			"SPEC.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
			`SPEC.volumes[1].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer`,
		}},
		{[]string{"SPEC.volumes=[{name: a, configMap: {name: m, items: [{key: k, path: a/}, {key: k, path: a/b}]}}, {name: b, projected: {sources: [{secret: {name: s, items: [{key: k, path: p}]}}, {}, {serviceAccountToken: {path: p}}]}}]"}, []string{
			`volume "a" (ConfigMap "m"): overlapping paths: "a/b" with "a"`, `volume "b" (Projected) has no sources provided`,
			`volume "b" (Projected): overlapping paths: "p" (ServiceAccountToken) with "p" (Secret "s")`,
		}},
		{[]string{"SPEC.overhead={memory: 1500m}", "SPEC.containers.0.resources={limits: {memory: 1500m, ephemeral-storage: 2500m}, requests: {memory: 500m, ephemeral-storage: 2}}"}, []string{
			`SPEC.overhead[memory]: fractional byte value "1500m" is invalid, must be an integer`,
			`SPEC.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer`,
			`SPEC.containers[0].resources.requests[memory]: fractional byte value "500m" is invalid, must be an integer`,
			`SPEC.containers[0].resources.limits[ephemeral-storage]: fractional byte value "2500m" is invalid, must be an integer`,
		}},
		{[]string{"SPEC.containers.0.env=[{name: A, value: x}, {name: A, value: $(A)y}, {name: A, value: $(A)}]"},
			[]string{`SPEC.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply`}},
		{[]string{"SPEC.containers.0.ports=[{containerPort: 80, hostIP: 10.0.0.1}, {containerPort: 80, hostPort: 81}, {containerPort: 80, hostPort: 81, hostIP: 10.0.0.1}, {containerPort: 81}, {containerPort: 81}]"}, []string{
			"SPEC.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:10.0.0.1}",
			"SPEC.containers[0].ports[1]: overlapping port definition with SPEC.containers[0].ports[0]",
			"SPEC.containers[0].ports[2]: overlapping port definition with SPEC.containers[0].ports[0]",
			"SPEC.containers[0].ports[2]: dangerously ambiguous port definition with SPEC.containers[0].ports[1]",
			"SPEC.containers[0].ports[4]: duplicate port definition with SPEC.containers[0].ports[3]",
		}},
		{[]string{"SPEC.containers=[{name: c, image: i, ports: [{name: web, containerPort: 80}]}, {name: d, image: i, ports: [{name: web, containerPort: 81}]}]"}, []string{
			`SPEC.containers[1].ports[0]: duplicate port name "web" with SPEC.containers[0].ports[0], services and probes that select ports by name will use SPEC.containers[0].ports[0]`,
		}},
	} {
		for _, in := range []struct{ manifest, path string }{
			{"pod", ""}, {"deployment", "spec.template."}, {"daemonset", "spec.template."}, {"replicaset", "spec.template."}, {"statefulset", "spec.template."}, {"job", "spec.template."}, {"cronjob", "spec.jobTemplate.spec.template."},
		} {
			replace := strings.NewReplacer("SPEC", in.path+"spec", "META", in.path+"metadata")
			plain := []string{in.path + "spec.containers=[{name: c, image: i}]", in.path + "spec.volumes=[]", in.path + "spec.initContainers=[]"}
			var want []string
			for _, edit := range tt.edits {
				plain = append(plain, replace.Replace(edit))
			}
			for _, text := range tt.want {
				want = append(want, replace.Replace(text))
			}
			r, obj := manifest(t, in.manifest, plain...)
			if got := warnings(r, obj, nil); !slices.Equal(got, want) {
				t.Errorf("%s %v: got\n%s\nwant\n%s", in.manifest, tt.edits, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// TestWarningsOfWorkloads: those about names, and about AppArmor, whose annotations a pod's fields take over; updates
// warn of what they change.
func TestWarningsOfWorkloads(t *testing.T) {
	const dots = "which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"
	const secrets = "spec.template.spec.imagePullSecrets=[{name: ''}]"
	const empty = `spec.template.spec.imagePullSecrets[0].name: invalid empty name ""`
	check := func(manifestName string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", manifestName, got, want)
		}
	}
	of := func(name string, edits ...string) (*resource.Resource, resource.Object) {
		return manifest(t, name, edits...)
	}
	for name, want := range map[string][]string{
		"pod": {"metadata.name: this is used in the Pod's hostname, " + dots}, "deployment": {"metadata.name: this is used in Pod names and hostnames, " + dots},
		"job": {"metadata.name: this is used in Pod names and hostnames, " + dots}, "daemonset": nil, "statefulset": nil,
	} {
		r, obj := of(name, "metadata.name=a.b")
		check(name, warnings(r, obj, nil), want)
	}
	for _, name := range []string{"deployment", "replicaset", "statefulset", "job"} {
		r, obj := of(name, secrets, "metadata.generation=2")
		_, old := of(name, "metadata.generation=1")
		check(name+", changed", warnings(r, obj, old), []string{empty})
		check(name+", as it was", warnings(r, obj, obj), nil)
	}
	r, obj := of("pod", "spec.imagePullSecrets=[{name: ''}]")
	check("a pod, changed", warnings(r, obj, obj), nil)
	r, obj = of("statefulset", "spec.revisionHistoryLimit=-1")
	check("statefulset", warnings(r, obj, nil), []string{"spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"})
	r, obj = of("job", "spec.completionMode=Indexed", "spec.completions=100001", "spec.parallelism=10001", secrets)
	check("a large job", warnings(r, obj, nil), []string{
		"spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", empty,
	})
	r, obj = of("deployment", "spec.template.spec.containers=[{name: c, image: i}]", "spec.template.metadata.annotations={container.apparmor.security.beta.kubernetes.io/c: localhost/x}")
	check("AppArmor", warnings(r, obj, nil), []string{`spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead`})
	r, obj = of("deployment", "spec.template.spec.containers=[{name: c, image: i}]", "spec.template.metadata.annotations={container.apparmor.security.beta.kubernetes.io/c: localhost/x}",
		"spec.template.spec.securityContext={appArmorProfile: {type: Localhost, localhostProfile: x}}")
	check("AppArmor in both", warnings(r, obj, nil), nil)
	r, obj = of("deployment", "spec.template.spec.terminationGracePeriodSeconds=-1") // a pod gets 1
	check("a negative grace", warnings(r, obj, nil), []string{"spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"})
}

// TestWarningsOfLargePods: what is looked at, and said, of one pod does not grow with the square of
// what is in it. As many ports, variables, files and tolerations as these fit into one request, and
// comparing each with each would take minutes and more memory than there is.
func TestWarningsOfLargePods(t *testing.T) {
	const many = 100_000
	for name, change := range map[string]func(*corev1.PodSpec){
		"equal ports": func(spec *corev1.PodSpec) {
			spec.Containers[0].Ports = slices.Repeat([]corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}}, many)
		},
		"ports of the host": func(spec *corev1.PodSpec) {
			for i := range many {
				spec.Containers[0].Ports = append(spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: 80, HostPort: int32(i)})
			}
		},
		"names of ports": func(spec *corev1.PodSpec) {
			for i := range many {
				spec.Containers[0].Ports = append(spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: int32(i), Name: fmt.Sprint("p", i)})
			}
		},
		"variables": func(spec *corev1.PodSpec) {
			for i := range many {
				spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("v", i)})
			}
		},
		"files": func(spec *corev1.PodSpec) {
			items := make([]corev1.KeyToPath, many)
			for i := range items {
				items[i].Path = fmt.Sprint("f", i)
			}
			spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{Items: items}}}}
		},
		"equal files": func(spec *corev1.PodSpec) {
			items := slices.Repeat([]corev1.KeyToPath{{Path: "f"}}, many)
			spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{Items: items}}}}
		},
		"aliases": func(spec *corev1.PodSpec) {
			for i := range many {
				spec.HostAliases = append(spec.HostAliases, corev1.HostAlias{IP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)})
			}
		},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
		change(&pod.Spec)
		if said := podspec.PodWarnings(pod); len(said) > 200 {
			t.Errorf("%s: %d warnings", name, len(said))
		}
	}
}

// TestManyTolerations: an update compares those of before with those of now, and not each with each.
func TestManyTolerations(t *testing.T) {
	r, old := manifest(t, "pod")
	tolerations := make([]corev1.Toleration, 100_000)
	for i := range tolerations {
		tolerations[i] = corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists}
	}
	old.(*corev1.Pod).Spec.Tolerations = tolerations
	pod := old.DeepCopyObject().(*corev1.Pod)
	pod.Spec.Tolerations[len(tolerations)-1].Key = "another"
	refusals := r.Strategy.ValidateUpdate(pod, old)
	if !strings.Contains(fmt.Sprint(refusals), "existing toleration can not be modified") {
		t.Errorf("%.500v", refusals)
	}
}
