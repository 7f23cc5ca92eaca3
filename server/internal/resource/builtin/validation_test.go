package builtin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// manifest decodes a manifest of testdata with some lines of JSON-pointer-like
// edits: "spec.replicas=-1" sets a value given as YAML, "spec.selector-"
// removes one. Numbers in a path index lists.
func manifest(t *testing.T, name string, edits ...string) (*resource.Resource, resource.Object) {
	t.Helper()
	r, obj := manifestAsIs(t, name, edits...)
	if r.Strategy.PrepareForCreate != nil {
		r.Strategy.PrepareForCreate(obj)
	}
	return r, obj
}

// manifestAsIs is manifest with what only a stored object has, a status say.
func manifestAsIs(t *testing.T, name string, edits ...string) (*resource.Resource, resource.Object) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := yaml.Unmarshal(body, &tree); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		path, text, set := strings.Cut(edit, "=")
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		change(t, tree, strings.Split(strings.TrimSuffix(path, "-"), "."), value, set)
	}
	if body, err = yaml.Marshal(tree); err != nil {
		t.Fatal(err)
	}
	head := tree.(map[string]any)
	gvk := schema.FromAPIVersionAndKind(head["apiVersion"].(string), head["kind"].(string))
	r := builtin.Table().ByKind(gvk)
	obj, _, strict, err := r.DecodeBody(resource.MediaTypeYAML, body)
	if err != nil || len(strict) > 0 {
		t.Fatal(strict, err)
	}
	if r.Strategy.Default != nil {
		r.Strategy.Default(obj)
	}
	return r, obj
}

func change(t *testing.T, tree any, path []string, value any, set bool) {
	t.Helper()
	last := len(path) == 1
	switch node := tree.(type) {
	case map[string]any:
		switch {
		case !last:
			if node[path[0]] == nil {
				node[path[0]] = map[string]any{}
			}
			change(t, node[path[0]], path[1:], value, set)
		case set:
			node[path[0]] = value
		default:
			delete(node, path[0])
		}
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err != nil {
			t.Fatal(err)
		}
		if last {
			node[i] = value
			return
		}
		change(t, node[i], path[1:], value, set)
	default:
		t.Fatalf("%v leads nowhere", path)
	}
}

// complaints are the errors in the short form the tables use.
func complaints(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, strings.TrimPrefix(string(err.Type), "FieldValue")+" "+err.Field)
	}
	return list
}

func TestValidate(t *testing.T) {
	pod := "spec.containers.0."
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     string // Type and path
	}{
		{"pod", []string{"metadata.name=Web"}, "Invalid metadata.name"},
		{"pod", []string{"metadata.generateName=Web-"}, "Invalid metadata.generateName"},
		{"service", []string{"metadata.generateName=a.b"}, "Invalid metadata.generateName"},
		{"statefulset", []string{"metadata.name=a.b"}, "Invalid metadata.name"},
		{"budget", []string{"metadata.generateName=a/b"}, "Invalid metadata.generateName"},
		{"pod", []string{"spec.containers-"}, "Required spec.containers"},
		{"pod", []string{pod + "name-"}, "Required spec.containers[0].name"},
		{"pod", []string{pod + "name=pinned"}, "Duplicate spec.containers[1].name"},
		{"pod", []string{pod + "name=prepare"}, "Duplicate spec.initContainers[0].name"},
		{"pod", []string{pod + "name=UPPER"}, "Invalid spec.containers[0].name"},
		{"pod", []string{pod + "image-"}, "Required spec.containers[0].image"},
		{"pod", []string{pod + "image=' x'"}, "Invalid spec.containers[0].image"},
		{"pod", []string{pod + "imagePullPolicy=Sometimes"}, "NotSupported spec.containers[0].imagePullPolicy"},
		{"pod", []string{pod + "ports.0.containerPort=70000"}, "Invalid spec.containers[0].ports[0].containerPort"},
		{"pod", []string{pod + "ports.0.containerPort-"}, "Required spec.containers[0].ports[0].containerPort"},
		{"pod", []string{pod + "ports.0.protocol=ICMP"}, "NotSupported spec.containers[0].ports[0].protocol"},
		{"pod", []string{pod + "ports=[{name: a, containerPort: 1}, {name: a, containerPort: 2}]"}, "Duplicate spec.containers[0].ports[1].name"},
		{"pod", []string{pod + "ports=[{hostPort: 5, containerPort: 1}, {hostPort: 5, containerPort: 2}]"}, "Duplicate spec.containers[0].ports[1].hostPort"},
		{"pod", []string{pod + "volumeMounts.0.name=other"}, "NotFound spec.containers[0].volumeMounts[0].name"},
		{"pod", []string{pod + "volumeMounts.0.mountPath-"}, "Required spec.containers[0].volumeMounts[0].mountPath"},
		{"pod", []string{pod + "resources.requests.cpu=2"}, "Invalid spec.containers[0].resources.requests"},
		{"pod", []string{pod + "resources.limits.memory=-1"}, "Invalid spec.containers[0].resources.limits[memory]"},
		{"pod", []string{pod + "env.0.name=a=b"}, "Invalid spec.containers[0].env[0].name"},
		{"pod", []string{pod + "env.0.value=x"}, "Invalid spec.containers[0].env[0].valueFrom"},
		{"pod", []string{pod + "livenessProbe.exec={command: [x]}"}, "Forbidden spec.containers[0].livenessProbe.httpGet"},
		{"pod", []string{pod + "livenessProbe.successThreshold=2"}, "Invalid spec.containers[0].livenessProbe.successThreshold"},
		{"pod", []string{pod + "livenessProbe.httpGet-"}, "Required spec.containers[0].livenessProbe"},
		{"pod", []string{pod + "lifecycle.preStop.httpGet.port=0"}, "Invalid spec.containers[0].lifecycle.preStop.httpGet.port"},
		{"pod", []string{"spec.initContainers.0.readinessProbe={exec: {command: [x]}}"}, "Forbidden spec.initContainers[0].readinessProbe"},
		{"pod", []string{"spec.volumes.1.name=config"}, "Duplicate spec.volumes[1].name"},
		{"pod", []string{"spec.volumes.1.emptyDir={}", "spec.volumes.1.hostPath={path: /x}"}, "Forbidden spec.volumes[1].hostPath"},
		{"pod", []string{"spec.volumes.2.hostPath.path=/a/../b"}, "Invalid spec.volumes[2].hostPath.path"},
		{"pod", []string{"spec.volumes.0.configMap.name-"}, "Required spec.volumes[0].configMap.name"},
		{"pod", []string{"spec.volumes.0.configMap.defaultMode=5000"}, "Invalid spec.volumes[0].configMap.defaultMode"},
		{"pod", []string{"spec.restartPolicy=Maybe"}, "NotSupported spec.restartPolicy"},
		{"pod", []string{"spec.dnsPolicy=None"}, "Required spec.dnsConfig"},
		{"pod", []string{"spec.dnsPolicy=Other"}, "NotSupported spec.dnsPolicy"},
		{"pod", []string{"spec.nodeSelector={'a b': c}"}, "Invalid spec.nodeSelector"},
		{"pod", []string{"spec.nodeName=A_B"}, "Invalid spec.nodeName"},
		{"pod", []string{"spec.activeDeadlineSeconds=0"}, "Invalid spec.activeDeadlineSeconds"},
		{"pod", []string{"spec.tolerations=[{key: a, operator: Exists, value: b}]"}, "Invalid spec.tolerations[0].operator"},
		{"pod", []string{"spec.tolerations=[{key: a, operator: Exists, tolerationSeconds: 3}]"}, "Invalid spec.tolerations[0].effect"},
		{"pod", []string{"spec.topologySpreadConstraints=[{maxSkew: 0, topologyKey: z}]"}, "Invalid spec.topologySpreadConstraints[0].maxSkew"},
		{"pod", []string{"spec.affinity={podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}"}, "Required spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"},
		{"pod", []string{"spec.affinity={nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [a b]}]}]}}}"}, "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]"},
		{"pod", []string{"spec.volumes=[{name: a, ephemeral: {volumeClaimTemplate: {metadata: {name: b}}}}]"}, "Forbidden spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name"},
		{"pod", []string{"spec.affinity={nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}"}, "Required spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"},
		{"pod", []string{"spec.schedulingGates=[{name: a}]", "spec.nodeName=node"}, "Forbidden spec.nodeName"},
		{"pod", []string{"spec.ephemeralContainers=[{name: d, image: i}]"}, "Forbidden spec.ephemeralContainers"},
		{"pod", []string{"spec.schedulingGates=[{name: a b}]"}, "Invalid spec.schedulingGates[0]"},
		{"pod", []string{"spec.overhead={a: 1}"}, "Invalid spec.overhead.limits[a]"},
		{"pod", []string{"spec.hostNetwork=true", "spec.hostUsers=false"}, "Forbidden spec.hostNetwork"},
		{"pod", []string{"spec.hostnameOverride=a b"}, "Invalid spec.hostnameOverride"},
		{"pod", []string{"spec.hostnameOverride=a", "spec.setHostnameAsFQDN=true"}, "Forbidden spec.hostnameOverride"},
		{"pod", []string{"spec.resourceClaims=[{name: a}]"}, "Invalid spec.resourceClaims[0]"},
		{"pod", []string{"spec.resourceClaims=[{name: a, resourceClaimName: a b}]"}, "Invalid spec.resourceClaims[0].resourceClaimName"},
		{"pod", []string{"spec.resourceClaims=[{name: a, resourceClaimName: a}, {name: a, resourceClaimName: b}]"}, "Duplicate spec.resourceClaims[1].name"},
		{"pod", []string{pod + "resources.claims=[{name: a}]"}, "NotFound spec.containers[0].resources.claims[0]"},
		{"pod", []string{"spec.resources={requests: {cpu: 1m}}"}, "Invalid spec.resources.requests[cpu]"},
		{"pod", []string{"spec.resources={limits: {cpu: 1m}}"}, "Invalid spec.resources.containers[0][cpu].limits"},
		{"pod", []string{"spec.resources={requests: {example.com/a: 1}}"}, "NotSupported spec.resources.requests[example.com/a]"},
		{"pod", []string{pod + "restartPolicy=Sometimes"}, "NotSupported spec.containers[0].restartPolicy"},
		{"pod", []string{pod + "restartPolicyRules=[{action: Restart}]"}, "Required spec.containers[0].restartPolicy"},
		{"pod", []string{pod + "restartPolicyRules=[{action: Restart}]", pod + "restartPolicy=Never"}, "Required spec.containers[0].restartPolicyRules[0].exitCodes"},
		{"pod", []string{pod + "livenessProbe.httpGet.httpHeaders=[{name: a b}]"}, "Invalid spec.containers[0].livenessProbe.httpGet.httpHeaders"},
		{"pod", []string{"spec.topologySpreadConstraints=[{maxSkew: 1, topologyKey: a}]"}, "NotSupported spec.topologySpreadConstraints[0].whenUnsatisfiable"},
		{"pod", []string{"spec.topologySpreadConstraints=[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}]"}, "Forbidden spec.topologySpreadConstraints[0].matchLabelKeys"},
		{"pod", []string{"spec.affinity={podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}, matchLabelKeys: [a], mismatchLabelKeys: [a]}]}}"},
			"Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]"},
		{"pod", []string{"spec.affinity={podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaces: [a b]}]}}"},
			"Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace"},
		{"pod", []string{"spec.dnsConfig={searches: [a b]}"}, "Invalid spec.dnsConfig.searches[0]"},
		{"pod", []string{"spec.securityContext={seLinuxChangePolicy: Sometimes}"}, "NotSupported spec.securityContext.seLinuxChangePolicy"},
		{"pod", []string{"spec.hostIPC=true", "spec.securityContext={sysctls: [{name: kernel.shmmax, value: a}]}"}, "Invalid spec.securityContext.sysctls[0].name"},
		{"deployment", []string{"spec.template.metadata.labels={app: a b}"}, "Invalid spec.template.labels"},
		{"deployment", []string{"spec.template.metadata.annotations={a b: c}"}, "Invalid spec.template.annotations"},
		{"deployment", []string{"spec.replicas=-1"}, "Invalid spec.replicas"},
		{"deployment", []string{"spec.selector-"}, "Required spec.selector"},
		{"deployment", []string{"spec.selector={}"}, "Invalid spec.selector"},
		{"deployment", []string{"spec.template.metadata.labels.app=other"}, "Invalid spec.template.metadata.labels"},
		{"deployment", []string{"spec.template.spec.restartPolicy=Never"}, "NotSupported spec.template.spec.restartPolicy"},
		{"deployment", []string{"spec.strategy={type: Recreate, rollingUpdate: {maxSurge: 1}}"}, "Forbidden spec.strategy.rollingUpdate"},
		{"deployment", []string{"spec.strategy={rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}"}, "Invalid spec.strategy.rollingUpdate.maxUnavailable"},
		{"deployment", []string{"spec.strategy={rollingUpdate: {maxSurge: x}}"}, "Invalid spec.strategy.rollingUpdate.maxSurge"},
		{"deployment", []string{"spec.progressDeadlineSeconds=5", "spec.minReadySeconds=5"}, "Invalid spec.progressDeadlineSeconds"},
		{"replicaset", []string{"spec.template.spec.containers.0.name-"}, "Required spec.template.spec.containers[0].name"},
		{"daemonset", []string{"spec.updateStrategy={rollingUpdate: {maxUnavailable: 0}}"}, "Required spec.updateStrategy.rollingUpdate.maxUnavailable"},
		{"statefulset", []string{"spec.podManagementPolicy=Chaotic"}, "Invalid spec.podManagementPolicy"},
		{"statefulset", []string{"spec.volumeClaimTemplates.0.spec.accessModes-"}, "Required spec.volumeClaimTemplates[0].spec.accessModes"},
		{"statefulset", []string{"spec.volumeClaimTemplates.0.metadata.name=other"}, "NotFound spec.template.spec.containers[0].volumeMounts[0].name"},
		{"job", []string{"spec.template.spec.restartPolicy=Always"}, "Required spec.template.spec.restartPolicy"},
		{"job", []string{"spec.completionMode=Indexed", "spec.parallelism=2"}, "Required spec.completions"},
		{"job", []string{"spec.manualSelector=true"}, "Required spec.selector"},
		{"job", []string{"spec.backoffLimit=-1"}, "Invalid spec.backoffLimit"},
		{"cronjob", []string{"spec.schedule-"}, "Required spec.schedule"},
		{"cronjob", []string{"spec.schedule='* * * *'"}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.schedule='60 * * * *'"}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.schedule='5-1 * * * *'"}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.schedule='*/0 * * * *'"}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.schedule='@every x'"}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.schedule=TZ=UTC"}, "Invalid spec.schedule"}, // the library panics on it, and on the next
		{"cronjob", []string{"spec.schedule=TZ="}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.schedule=CRON_TZ="}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.schedule=TZ=TZ=TZ="}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.schedule='TZ=UTC * * * * *'"}, "Invalid spec.schedule"},
		{"cronjob", []string{"spec.timeZone=Mars/Olympus"}, "Invalid spec.timeZone"},
		{"cronjob", []string{"spec.concurrencyPolicy=Any"}, "NotSupported spec.concurrencyPolicy"},
		{"cronjob", []string{"metadata.name=" + strings.Repeat("a", 53)}, "Invalid metadata.name"},
		{"service", []string{"metadata.name=web.a"}, "Invalid metadata.name"},
		{"service", []string{"spec.ports-"}, "Required spec.ports"},
		{"service", []string{"spec.ports.0.port=0"}, "Invalid spec.ports[0].port"},
		{"service", []string{"spec.ports.0.nodePort=30000"}, "Forbidden spec.ports[0].nodePort"},
		{"service", []string{"spec.type=Other"}, "NotSupported spec.type"},
		{"service", []string{"spec.type=ExternalName"}, "Required spec.externalName"},
		{"service-balanced", []string{"spec.ports.1.name-"}, "Required spec.ports[1].name"},
		{"service-balanced", []string{"spec.ports.1.name=a"}, "Duplicate spec.ports[1].name"},
		{"service-balanced", []string{"spec.ports.1.port=80"}, "Duplicate spec.ports[1]"},
		{"service-balanced", []string{"spec.externalTrafficPolicy=None"}, "NotSupported spec.externalTrafficPolicy"},
		{"secret", []string{"data.a/b=YQ=="}, "Invalid data[a/b]"},
		{"secret", []string{"type=kubernetes.io/tls"}, "Required data[tls.crt]"},
		{"secret", []string{"type=kubernetes.io/dockerconfigjson"}, "Required data[.dockerconfigjson]"},
		{"namespace", []string{"metadata.name=a.b"}, "Invalid metadata.name"},
		{"claim", []string{"spec.accessModes=[Sometimes]"}, "NotSupported spec.accessModes"},
		{"claim", []string{"spec.resources-"}, "Required spec.resources[storage]"},
		{"networkpolicy", []string{"spec.ingress.0.from.0.ipBlock.except=[11.0.0.0/16]"}, "Invalid spec.ingress[0].from[0].ipBlock.except[0]"},
		{"networkpolicy", []string{"spec.ingress.0.from=[{}]"}, "Required spec.ingress[0].from[0]"},
		{"networkpolicy", []string{"spec.policyTypes=[Other]"}, "NotSupported spec.policyTypes[0]"},
		{"autoscaler", []string{"spec.maxReplicas=0"}, "Invalid spec.maxReplicas"},
		{"autoscaler", []string{"spec.minReplicas=9"}, "Invalid spec.maxReplicas"},
		{"autoscaler", []string{"spec.scaleTargetRef.name-"}, "Required spec.scaleTargetRef.name"},
		{"limitrange", []string{"spec.limits.0.min.cpu=3"}, "Invalid spec.limits[0].min[cpu]"},
		{"rolebinding", []string{"roleRef.kind=User"}, "NotSupported roleRef.kind"},
		{"rolebinding", []string{"subjects.0.kind=Robot"}, "NotSupported subjects[0].kind"},
		{"rolebinding", []string{"metadata.name=a/b"}, "Invalid metadata.name"},
		{"pod", []string{pod + "resources.limits.tpu=1"}, "Invalid spec.containers[0].resources.limits[tpu]"},
		{"pod", []string{pod + "resources={requests: {example.com/gpu: 1}}"}, "Required spec.containers[0].resources.limits"},
		{"pod", []string{pod + "resources={requests: {example.com/gpu: 1}, limits: {example.com/gpu: 2}}"}, "Invalid spec.containers[0].resources.requests"},
		{"pod", []string{pod + "resources={limits: {example.com/gpu: 1500m}}"}, "Invalid spec.containers[0].resources.limits[example.com/gpu]"},
		{"pod", []string{pod + "securityContext={privileged: true, allowPrivilegeEscalation: false}"}, "Invalid spec.containers[0].securityContext"},
		{"pod", []string{pod + "securityContext={runAsUser: -1}"}, "Invalid spec.containers[0].securityContext.runAsUser"},
		{"pod", []string{pod + "securityContext={seccompProfile: {type: Localhost}}"}, "Required spec.containers[0].securityContext.seccompProfile.localhostProfile"},
		{"pod", []string{pod + "securityContext={seccompProfile: {type: Mine}}"}, "NotSupported spec.containers[0].securityContext.seccompProfile.type"},
		{"pod", []string{"spec.securityContext={sysctls: [{name: 'a b', value: x}]}"}, "Invalid spec.securityContext.sysctls[0].name"},
		{"pod", []string{"spec.securityContext={fsGroupChangePolicy: Never}"}, "NotSupported spec.securityContext.fsGroupChangePolicy"},
		{"pod", []string{"spec.hostPID=true", "spec.shareProcessNamespace=true"}, "Invalid spec.shareProcessNamespace"},
		{"pod", []string{"spec.hostNetwork=true", pod + "ports=[{containerPort: 80, hostPort: 81}]"}, "Invalid spec.containers[0].ports[0].hostPort"},
		{"pod", []string{pod + "env=[{name: a, valueFrom: {fieldRef: {fieldPath: spec.nothing}}}]"}, "Invalid spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
		{"pod", []string{pod + "env=[{name: a, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}]"}, "NotSupported spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
		{"pod", []string{pod + "env=[{name: a, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['a b']\"}}}]"}, "Invalid spec.containers[0].env[0].valueFrom.fieldRef"},
		{"pod", []string{pod + "env=[{name: a, valueFrom: {resourceFieldRef: {resource: limits.tpu}}}]"}, "NotSupported spec.containers[0].env[0].valueFrom.resourceFieldRef.resource"},
		{"pod", []string{pod + "volumeMounts.0.subPath=/abs"}, "Invalid spec.containers[0].volumeMounts.subPath"},
		{"pod", []string{pod + "volumeMounts.0.mountPropagation=Bidirectional"}, "Forbidden spec.containers[0].volumeMounts.mountPropagation"},
		{"pod", []string{"spec.volumes.0.configMap.items=[{key: a, path: ../b}]"}, "Invalid spec.volumes[0].configMap.items[0].path"},
		{"pod", []string{"spec.volumes.2.hostPath.type=Sometimes"}, "NotSupported spec.volumes[2].hostPath.type"},
		{"pod", []string{"spec.volumes.1={name: p, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 5}}]}}"}, "Invalid spec.volumes[1].projected.sources[0].serviceAccountToken.expirationSeconds"},
		{"pod", []string{"spec.volumes.1={name: p, downwardAPI: {items: [{path: x}]}}"}, "Required spec.volumes[1].downwardAPI"},
		{"pod", []string{"spec.volumes.1={name: p, nfs: {server: s, path: rel}}"}, "Invalid spec.volumes[1].nfs.path"},
		{"pod", []string{"spec.ephemeralContainers=[{name: d, image: i, targetContainerName: none}]"}, "NotFound spec.ephemeralContainers[0].targetContainerName"},
		{"pod", []string{"spec.ephemeralContainers=[{name: d, image: i, ports: [{containerPort: 1}]}]"}, "Forbidden spec.ephemeralContainers[0].ports"},
		{"pod", []string{"spec.os={name: plan9}"}, "NotSupported spec.os"},
		{"pod", []string{"spec.readinessGates=[{conditionType: 'a b'}]"}, "Invalid spec.readinessGates[0].conditionType"},
		{"deployment", []string{"spec.strategy={rollingUpdate: {maxUnavailable: 101%}}"}, "Invalid spec.strategy.rollingUpdate.maxUnavailable"},
		{"statefulset", []string{"spec.updateStrategy={rollingUpdate: {maxUnavailable: 0}}"}, "Invalid spec.updateStrategy.rollingUpdate.maxUnavailable"},
		{"statefulset", []string{"spec.updateStrategy={rollingUpdate: {maxUnavailable: 101%}}"}, "Invalid spec.updateStrategy.rollingUpdate.maxUnavailable"},
		{"daemonset", []string{"spec.updateStrategy={rollingUpdate: {maxUnavailable: 1, maxSurge: 1}}"}, "Invalid spec.updateStrategy.rollingUpdate.maxSurge"},
		{"job", []string{"spec.managedBy=me"}, "Invalid spec.managedBy"},
		{"job", []string{"spec.maxFailedIndexes=1"}, "Required spec.backoffLimitPerIndex"},
		{"job", []string{"spec.podFailurePolicy={rules: [{action: Explode, onPodConditions: [{type: DisruptionTarget}]}]}"}, "NotSupported spec.podFailurePolicy.rules[0].action"},
		{"job", []string{"spec.podFailurePolicy={rules: [{action: FailJob}]}"}, "Invalid spec.podFailurePolicy.rules[0]"},
		{"job", []string{"spec.podFailurePolicy={rules: [{action: FailIndex, onPodConditions: [{type: DisruptionTarget}]}]}"}, "Invalid spec.podFailurePolicy.rules[0].action"},
		{"job", []string{"spec.podFailurePolicy={rules: [{action: FailJob, onExitCodes: {operator: In, values: [0]}}]}"}, "Invalid spec.podFailurePolicy.rules[0].onExitCodes.values[0]"},
		{"job", []string{"spec.podFailurePolicy={rules: [{action: FailJob, onExitCodes: {operator: In, values: [3, 2]}}]}"}, "Invalid spec.podFailurePolicy.rules[0].onExitCodes.values"},
		{"job", []string{"spec.podFailurePolicy={rules: [{action: FailJob, onExitCodes: {containerName: none, operator: In, values: [3]}}]}"}, "Invalid spec.podFailurePolicy.rules[0].onExitCodes.containerName"},
		{"job", []string{"spec.completionMode=Indexed", "spec.completions=3", "spec.successPolicy={rules: []}"}, "Required spec.successPolicy.rules"},
		{"job", []string{"spec.completionMode=Indexed", "spec.completions=3", "spec.successPolicy={rules: [{succeededIndexes: '0-3'}]}"}, "Invalid spec.successPolicy.rules[0].succeededIndexes"},
		{"job", []string{"spec.completionMode=Indexed", "spec.completions=3", "spec.successPolicy={rules: [{succeededIndexes: '0,2', succeededCount: 3}]}"}, "Invalid spec.successPolicy.rules[0].succeededCount"},
		{"job", []string{"spec.completionMode=NonIndexed", "spec.successPolicy={rules: [{succeededCount: 1}]}"}, "Invalid spec.successPolicy"},
		{"ingress", []string{"spec.rules.0.host=10.0.0.1"}, "Invalid spec.rules[0].host"},
		{"ingress", []string{"spec.rules.0.http.paths.0.pathType-"}, "Required spec.rules[0].http.paths[0].pathType"},
		{"ingress", []string{"spec.rules-"}, "Invalid spec"},
		{"budget", []string{"spec.minAvailable=101%"}, "Invalid spec.minAvailable"},
		{"budget", []string{"spec.maxUnavailable=1"}, "Invalid spec"},
		{"budget", []string{"spec.unhealthyPodEvictionPolicy=Never"}, "NotSupported spec.unhealthyPodEvictionPolicy"},
		{"quota", []string{"spec.hard.tpu=1"}, "Invalid spec.hard[tpu]"},
		{"quota", []string{"spec.scopes=[Sometimes]"}, "Invalid spec.scopes"},
		{"quota", []string{"spec.scopes=[BestEffort, NotBestEffort]"}, "Invalid spec.scopes"},
		{"limitrange", []string{"spec.limits=[{type: Container}, {type: Container}]"}, "Duplicate spec.limits[1].type"},
		{"limitrange", []string{"spec.limits=[{type: Pod, default: {cpu: 1}}]"}, "Forbidden spec.limits[0].default"},
		{"limitrange", []string{"spec.limits=[{type: PersistentVolumeClaim}]"}, "Required spec.limits[0].limits"},
		{"volume", []string{"spec.capacity-"}, "Required spec.capacity"},
		{"volume", []string{"spec.hostPath-"}, "Required spec"},
		{"storageclass", []string{"volumeBindingMode=Later"}, "NotSupported volumeBindingMode"},
		{"priorityclass", []string{"value=1000000001"}, "Forbidden value"},
		{"priorityclass", []string{"metadata.name=system-mine"}, "Forbidden metadata.name"},
		{"endpointslice", []string{"endpoints.0.addresses=[]"}, "Required endpoints[0].addresses"},
		{"signingrequest", []string{"spec.signerName=mine"}, "Invalid spec.signerName"},
		{"signingrequest", []string{"spec.signerName=mine/x"}, "Invalid spec.signerName"},
		{"signingrequest", []string{"spec.usages=[]"}, "Required spec.usages"},
		{"signingrequest", []string{"spec.request=eA=="}, "Invalid spec.request"},
		{"trustbundle", []string{"metadata.name=one"}, "Invalid metadata.name"},
		{"trustbundle", []string{"metadata.name=example.com:others:one"}, "Invalid metadata.name"},
		{"trustbundle", []string{"metadata.name='example.com:roots:'"}, "Invalid metadata.name"},
		{"trustbundle", []string{"spec.signerName-"}, "Invalid metadata.name"},
		{"trustbundle", []string{"metadata.generateName=others-"}, "Invalid metadata.generateName"},
		{"trustbundle", []string{"spec.signerName=mine", "metadata.name='mine:one'"}, "Invalid spec.signerName"},
		{"trustbundle", []string{"spec.trustBundle="}, "Invalid spec.trustBundle"},
		{"podcertificaterequest", []string{"metadata.name=A b"}, "Invalid metadata.name"},
		{"podcertificaterequest", []string{"spec.signerName=mine"}, "Invalid spec.signerName"},
		{"podcertificaterequest", []string{"spec.unverifiedUserAnnotations={a: b}"}, "Invalid spec.unverifiedUserAnnotations"},
		{"podcertificaterequest", []string{"spec.podName=A b"}, "Invalid spec.podName"},
		{"podcertificaterequest", []string{"spec.podUID="}, "Invalid spec.podUID"},
		{"podcertificaterequest", []string{"spec.serviceAccountName-"}, "Invalid spec.serviceAccountName"},
		{"podcertificaterequest", []string{"spec.serviceAccountUID=" + strings.Repeat("a", 129)}, "TooLong spec.serviceAccountUID"},
		{"podcertificaterequest", []string{"spec.nodeName="}, "Invalid spec.nodeName"},
		{"podcertificaterequest", []string{"spec.nodeUID-"}, "Invalid spec.nodeUID"},
		{"podcertificaterequest", []string{"spec.maxExpirationSeconds=3599"}, "Invalid spec.maxExpirationSeconds"},
		{"podcertificaterequest", []string{"spec.maxExpirationSeconds=7862401"}, "Invalid spec.maxExpirationSeconds"},
		{"podcertificaterequest", []string{"spec.maxExpirationSeconds=86401", "spec.signerName=kubernetes.io/x"}, "Invalid spec.maxExpirationSeconds"},
		{"podcertificaterequest", []string{"spec.stubPKCS10Request-"}, "Invalid spec"},
		{"podcertificaterequest", []string{"spec.stubPKCS10Request=eA=="}, "Invalid spec.stubPKCS10Request"},
		{"migration", []string{"spec.resource.resource-"}, "Required spec.resource.resource"},
		{"migration", []string{"spec.resource.resource=A"}, "Invalid spec.resource.resource"},
		{"migration", []string{"spec.resource.group=A"}, "Invalid spec.resource.group"},
		{"service-balanced", []string{"spec.ports.0.appProtocol='a b'"}, "Invalid spec.ports[0].appProtocol"},
		{"service-balanced", []string{"spec.trafficDistribution=Far"}, "NotSupported spec.trafficDistribution"},
		{"service-balanced", []string{"spec.loadBalancerSourceRanges=[10.0.0.0]"}, "Invalid spec.LoadBalancerSourceRanges[0]"},
		{"service-balanced", []string{"spec.type=ClusterIP", "spec.loadBalancerSourceRanges=[10.0.0.0/8]"}, "Forbidden spec.LoadBalancerSourceRanges"},
		{"service-balanced", []string{"spec.type=ClusterIP", "spec.healthCheckNodePort=30000"}, "Invalid spec.healthCheckNodePort"},
		{"webhook", []string{"webhooks.0.sideEffects=Some"}, "NotSupported webhooks[0].sideEffects"},
		{"webhook", []string{"webhooks.0.clientConfig={url: 'http://x'}"}, "Invalid webhooks[0].clientConfig.url"},
		{"webhook", []string{"webhooks.0.timeoutSeconds=31"}, "Invalid webhooks[0].timeoutSeconds"},
		{"budget", []string{"spec.unhealthyPodEvictionPolicy=''"}, "NotSupported spec.unhealthyPodEvictionPolicy"},
		{"webhook", []string{"webhooks.0.sideEffects=''"}, "NotSupported webhooks[0].sideEffects"},
		{"webhook", []string{"webhooks.0.failurePolicy=''"}, "NotSupported webhooks[0].failurePolicy"},
		{"webhook", []string{"webhooks.0.matchPolicy=''"}, "NotSupported webhooks[0].matchPolicy"},
	} {
		t.Run(tt.manifest+" "+strings.Join(tt.edits, " "), func(t *testing.T) {
			r, obj := manifest(t, tt.manifest, tt.edits...)
			if got := complaints(validateNew(r, obj)); !slices.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// validateNew is the validation of a kind for an object that is created.
func validateNew(r *resource.Resource, obj resource.Object) field.ErrorList {
	var errs field.ErrorList
	if f := r.Strategy.ValidateFirst; f != nil {
		errs = f(obj)
	}
	errs = append(errs, r.Strategy.ValidateName(obj, true)...)
	for _, f := range []func(resource.Object) field.ErrorList{r.Strategy.Validate, r.Strategy.ValidateCreate} {
		if f != nil {
			errs = append(errs, f(obj)...)
		}
	}
	return errs
}

// TestValidateAllows: what kube-apiserver accepts, though it looks wrong.
func TestValidateAllows(t *testing.T) {
	template := "spec.template.spec."
	for _, tt := range []struct {
		manifest string
		edits    []string
	}{
		// A prefix may end where a name may not.
		{"pod", []string{"metadata.generateName=web-"}},
		{"service", []string{"metadata.name=1a"}},
		{"budget", []string{"metadata.name=A b", "metadata.generateName=A b"}},
		{"signingrequest", []string{"metadata.name=A b", "metadata.generateName=A b"}},
		{"trustbundle", []string{"metadata.name=one", "spec.signerName-"}},
		{"trustbundle", []string{"metadata.generateName='example.com:roots:a-'"}},
		{"podcertificaterequest", []string{"spec.unverifiedUserAnnotations={Example.com/a: b}", "spec.maxExpirationSeconds=7862400"}},
		// Whoever makes pods of a template can change them before.
		{"deployment", []string{template + "schedulingGates=[{name: a}]", template + "nodeName=node"}},
		{"deployment", []string{template + "containers.0.image=' '"}},
		{"deployment", []string{template + "terminationGracePeriodSeconds=-1"}},
		{"deployment", []string{template + "schedulerName=a b", template + "imagePullSecrets=[{}]"}},
		// Nodes need not match what is preferred.
		{"pod", []string{"spec.affinity={nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: In, values: [a b]}]}}]}}"}},
	} {
		t.Run(tt.manifest+" "+strings.Join(tt.edits, " "), func(t *testing.T) {
			r, obj := manifest(t, tt.manifest, tt.edits...)
			if errs := validateNew(r, obj); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     string // "" if the change is allowed
	}{
		{"pod", []string{"spec.containers.0.image=nginx:1.30", "spec.containers.0.imagePullPolicy=IfNotPresent"}, ""},
		{"pod", []string{"spec.activeDeadlineSeconds=5"}, ""},
		{"pod", []string{"spec.tolerations=[{key: more, operator: Exists}]"}, ""},
		{"pod", []string{"metadata.labels={a: b}"}, ""},
		{"pod", []string{"spec.containers.0.command=[x]"}, "Forbidden spec"},
		{"pod", []string{"spec.nodeName=other"}, "Forbidden spec"},
		{"pod", []string{"spec.containers=[{name: a, image: a}]"}, "Forbidden spec.containers"},
		{"pod", []string{"metadata.generateName=Web-"}, "Invalid metadata.generateName"},
		{"secret", []string{"metadata.generateName=Web-"}, "Invalid metadata.generateName"},
		{"deployment", []string{"metadata.generateName=Web-"}, ""},
		{"cronjob", []string{"metadata.generateName=Web-"}, ""},
		{"quota", []string{"metadata.generateName=Web-"}, ""},
		{"csidriver", []string{"metadata.generateName=Web-"}, ""},
		{"deployment", []string{"spec.replicas=7", "spec.template.spec.containers.0.image=b"}, ""},
		{"deployment", []string{"spec.selector.matchLabels.app=b"}, "Invalid spec.selector"},
		{"replicaset", []string{"spec.selector.matchLabels.app=b"}, "Invalid spec.selector"},
		{"daemonset", []string{"spec.selector.matchLabels.app=b"}, "Invalid spec.selector"},
		{"statefulset", []string{"spec.replicas=3"}, ""},
		{"statefulset", []string{"spec.serviceName=other"}, "Invalid spec.serviceName"},
		{"job", []string{"spec.parallelism=3", "spec.completions=1"}, ""},
		{"job", []string{"spec.completions=3", "spec.parallelism=1"}, "Invalid spec.completions"},
		{"job", []string{"spec.template.spec.containers.0.image=b"}, "Invalid spec.template"},
		{"secret", []string{"type=mine"}, "Invalid type"},
		{"claim", []string{"spec.accessModes=[ReadWriteMany]"}, "Forbidden spec"},
		{"claim", []string{"spec.resources.requests.storage=1Mi"}, "Forbidden spec"},
		{"rolebinding", []string{"roleRef.name=edit"}, "Invalid roleRef"},
		{"trustbundle", []string{"spec.signerName=example.com/others", "metadata.name=example.com:others:one"}, "Invalid spec.signerName"},
		{"trustbundle", []string{"spec.trustBundle=x"}, "Invalid spec.trustBundle"},
		{"trustbundle", []string{"metadata.labels={a: b}"}, ""},
		{"podcertificaterequest", []string{"spec.podName=other"}, "Invalid spec"},
		{"podcertificaterequest", []string{"metadata.name=A b", "metadata.labels={a: b}"}, ""},
		{"migration", []string{"spec.resource.resource=daemonsets"}, "Invalid spec"},
	} {
		t.Run(tt.manifest+" "+strings.Join(tt.edits, " "), func(t *testing.T) {
			r, old := manifest(t, tt.manifest)
			_, obj := manifest(t, tt.manifest, tt.edits...)
			if r.Strategy.PrepareForUpdate != nil {
				r.Strategy.PrepareForUpdate(obj, old)
			}
			got := complaints(append(r.Strategy.ValidateName(obj, false), validateChanged(r, obj, old)...))
			if tt.want == "" && len(got) > 0 || tt.want != "" && !slices.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestValidateSubresource: what a subresource may change, and into what.
func TestValidateSubresource(t *testing.T) {
	debugger := "spec.ephemeralContainers=[{name: d, image: i}]"
	resources := func(cpu string) string {
		return "spec.containers.0.resources={requests: {cpu: " + cpu + ", memory: 1Mi}}"
	}
	approved, denied := "status.conditions=[{type: Approved, status: 'True'}]", "status.conditions=[{type: Denied, status: 'True'}]"
	for _, tt := range []struct {
		manifest, subresource string
		before, after         []string
		want                  string
	}{
		{"pod", "ephemeralcontainers", nil, []string{debugger}, ""},
		{"pod", "ephemeralcontainers", nil, []string{"spec.ephemeralContainers=[{name: d}]"}, "Required spec.ephemeralContainers[0].image"},
		{"pod", "ephemeralcontainers", nil, []string{"spec.ephemeralContainers=[{name: d, image: ' i'}]"}, "Invalid spec.ephemeralContainers[0].image"},
		{"pod", "ephemeralcontainers", nil, []string{"spec.ephemeralContainers=[{name: d, image: i, restartPolicyRules: [{action: Restart}]}]"}, "Forbidden spec.ephemeralContainers[0].restartPolicyRules"},
		{"pod", "ephemeralcontainers", []string{debugger}, nil, "Forbidden spec.ephemeralContainers"},
		{"pod", "ephemeralcontainers", []string{debugger}, []string{"spec.ephemeralContainers=[{name: d, image: other}]"}, "Forbidden spec.ephemeralContainers"},
		{"pod", "resize", []string{resources("1")}, []string{resources("2")}, ""},
		{"pod", "resize", []string{resources("1")}, []string{resources("-2")}, "Invalid spec.containers[0].resources.requests[cpu]"},
		{"pod", "resize", []string{resources("1")}, []string{"spec.containers.0.resources={requests: {cpu: 1}}"}, "Forbidden spec.containers[0].resources.requests"},
		{"pod", "resize", []string{resources("1")}, []string{"spec.containers.0.resources={requests: {cpu: 1, memory: 1Mi, ephemeral-storage: 1}}"}, "Forbidden spec"},
		{"pod-guaranteed", "resize", nil, []string{"spec.containers.0.resources.requests.cpu=1m"}, "Invalid spec"},
		{"namespace", "finalize", nil, []string{"spec={finalizers: [kubernetes, orphan, foregroundDeletion, example.com/a]}"}, ""},
		{"namespace", "finalize", nil, []string{"spec={finalizers: [kubernetes, a]}"}, "Invalid spec.finalizers[1]"},
		{"namespace", "finalize", nil, []string{"spec={finalizers: ['a/b c']}"}, "Invalid spec.finalizers[0]"},
		{"signingrequest", "approval", nil, []string{approved}, ""},
		{"signingrequest", "approval", []string{approved}, []string{denied}, "Forbidden status.conditions"},
		{"signingrequest", "approval", nil, []string{"status.conditions=[{type: Approved, status: 'False'}]"}, "NotSupported status.conditions[0].status"},
		{"signingrequest", "approval", []string{approved}, []string{"status.conditions=[{type: Approved, status: 'True'}, {type: Denied, status: 'True'}]"}, "Invalid status.conditions"},
	} {
		t.Run(tt.subresource+" "+strings.Join(tt.after, " "), func(t *testing.T) {
			r, old := manifestAsIs(t, tt.manifest, tt.before...)
			_, obj := manifestAsIs(t, tt.manifest, tt.after...)
			got := complaints(r.Strategy.ValidateSubresource(tt.subresource, obj, old))
			if tt.want == "" && len(got) > 0 || tt.want != "" && !slices.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSignersDoNotJudge(t *testing.T) {
	r, old := manifestAsIs(t, "signingrequest")
	_, obj := manifestAsIs(t, "signingrequest", "status.conditions=[{type: Approved, status: 'True'}]")
	if got := complaints(r.Strategy.ValidateStatus(obj, old)); !slices.Contains(got, "Forbidden status.conditions") {
		t.Errorf("a signer approved: %v", got)
	}
	_, obj = manifestAsIs(t, "signingrequest", "status.certificate=eA==")
	if got := complaints(r.Strategy.ValidateStatus(obj, old)); !slices.Contains(got, "Invalid status.certificate") {
		t.Errorf("a signer wrote something else than a certificate: %v", got)
	}
}

// TestMissingNamesOfContainers: an init container without a name repeats that of a container without
// one, and an ephemeral one repeats that of both.
func TestMissingNamesOfContainers(t *testing.T) {
	const spec, nameless = "spec.template.spec.", "[{image: i}, {image: i}]"
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     []string
	}{
		{"deployment", []string{spec + "initContainers=" + nameless}, []string{"Required " + spec + "initContainers[0].name", "Required " + spec + "initContainers[1].name"}},
		{"deployment", []string{spec + "containers=[{image: i}]", spec + "initContainers=" + nameless}, []string{
			"Required " + spec + "containers[0].name", "Required " + spec + "initContainers[0].name", "Duplicate " + spec + "initContainers[0].name",
			"Required " + spec + "initContainers[1].name", "Duplicate " + spec + "initContainers[1].name",
		}},
		{"pod", []string{"spec.initContainers=[{image: i}]", "spec.ephemeralContainers=[{image: i}]"}, []string{
			"Required spec.initContainers[0].name", "Required spec.ephemeralContainers[0].name", "Duplicate spec.ephemeralContainers[0].name", "Forbidden spec.ephemeralContainers",
		}},
	} {
		r, obj := manifest(t, tt.manifest, tt.edits...)
		if got := complaints(validateNew(r, obj)); !slices.Equal(got, tt.want) {
			t.Errorf("%q:\ngot  %q\nwant %q", tt.edits, got, tt.want)
		}
	}
}

// TestValidateInOrder: what is wrong with a pod is told in kube-apiserver's order, which follows
// neither the alphabet nor the type.
func TestValidateInOrder(t *testing.T) {
	r, pod := manifest(t, "pod",
		"spec.volumes.0.name=a b", "spec.resourceClaims=[{}]", "spec.containers.0.image=", "spec.containers.0.lifecycle={}", "spec.containers.0.readinessProbe={}",
		"spec.containers.0.startupProbe={}", "spec.initContainers.0.image=", "spec.restartPolicy=a", "spec.dnsPolicy=a",
		"spec.nodeSelector={a b: c}", "spec.dnsConfig={searches: [a b]}", "spec.schedulingGates=[{}]", "spec.nodeName=a b", "spec.tolerations=[{effect: a}]",
		"spec.os={name: a}")
	want := []string{
		"Invalid spec.volumes[0].name", "Required spec.resourceClaims[0].name", "Invalid spec.resourceClaims[0]", "Required spec.containers[0].image",
		"NotFound spec.containers[0].volumeMounts[0].name", "Required spec.containers[0].readinessProbe", "Required spec.containers[0].startupProbe",
		"Required spec.initContainers[0].image", "NotSupported spec.restartPolicy", "NotSupported spec.dnsPolicy", "Invalid spec.nodeSelector",
		"Invalid spec.dnsConfig.searches[0]", "Invalid spec.schedulingGates[0]", "Invalid spec.schedulingGates[0]", "Invalid spec.nodeName",
		"Invalid spec.tolerations[0].operator", "NotSupported spec.tolerations[0].effect", "NotSupported spec.os", "Forbidden spec.nodeName",
	}
	if got := complaints(validateNew(r, pod)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
