package builtin_test

import (
	"slices"
	"strings"
	"testing"
)

// TestFieldsTogether: what a field may be depends on others, and what is wrong with each is said.
func TestFieldsTogether(t *testing.T) {
	const c = "spec.containers.0."
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     []string
	}{
		{"pod", []string{"spec.terminationGracePeriodSeconds=5", c + "lifecycle={preStop: {sleep: {seconds: 5}}}"}, nil},
		{"pod", []string{"spec.terminationGracePeriodSeconds=5", c + "lifecycle={preStop: {sleep: {seconds: 6}}}"}, []string{"Invalid spec.containers[0].lifecycle.preStop.sleep"}},
		{"pod", []string{c + "lifecycle={postStart: {sleep: {seconds: -1}}}"}, []string{"Invalid spec.containers[0].lifecycle.postStart.sleep"}},

		{"pod", []string{c + "resources={limits: {cpu: 1, hugepages-2Mi: 4Mi}}"}, nil},
		{"pod", []string{c + "resources={limits: {cpu: 1, hugepages-2Mi: 0}}"}, nil},
		{"pod", []string{c + "resources={limits: {cpu: 1, hugepages-2Mi: 3Mi}}"}, []string{"Invalid spec.containers[0].resources.limits[hugepages-2Mi]", "Invalid spec.containers[0].resources.requests[hugepages-2Mi]"}},
		{"pod", []string{c + "resources={limits: {cpu: 1, hugepages-x: 2Mi}}"}, []string{"Invalid spec.containers[0].resources.limits[hugepages-x]", "Invalid spec.containers[0].resources.requests[hugepages-x]"}},

		{"pod", []string{c + "env=[{name: A, valueFrom: {fileKeyRef: {key: A, volumeName: scratch, path: a/b}}}]"}, nil},
		{"pod", []string{c + "env=[{name: A, valueFrom: {fileKeyRef: {}}}]"}, []string{
			"Required spec.containers[0].env[0].valueFrom.fileKeyRef.key", "Required spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName",
			"Required spec.containers[0].env[0].valueFrom.fileKeyRef.path", "NotFound spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName",
		}},
		{"pod", []string{c + "env=[{name: A, valueFrom: {fileKeyRef: {key: a=b, volumeName: config, path: ../b}}}]"}, []string{
			"Invalid spec.containers[0].env[0].valueFrom.fileKeyRef.key", "Invalid spec.containers[0].env[0].valueFrom.fileKeyRef.path",
			"Invalid spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName",
		}},
		{"pod", []string{c + "envFrom=[{configMapRef: {}, secretRef: {name: s}}, {}]"}, []string{
			"Required spec.containers[0].envFrom[0].configMapRef.name", "Invalid spec.containers[0].envFrom", "Invalid spec.containers[0].envFrom",
		}},

		{"pod", []string{"spec.initContainers.0.restartPolicyRules=[{action: Explode}]"}, []string{"Required spec.initContainers[0].restartPolicy"}},
		{"pod", []string{c + "restartPolicyRules=[{action: Explode}]"}, []string{
			"Required spec.containers[0].restartPolicy", "NotSupported spec.containers[0].restartPolicyRules[0].action", "Required spec.containers[0].restartPolicyRules[0].exitCodes",
		}},

		{"pod", []string{c + "ports=[{name: -a, containerPort: 1}, {name: -a, containerPort: 2}]"}, []string{
			"Invalid spec.containers[0].ports[0].name", "Invalid spec.containers[0].ports[1].name",
		}},
		{"pod", []string{"spec.ephemeralContainers=[{name: d, image: i, lifecycle: {}, restartPolicy: Always}]"}, []string{
			"Forbidden spec.ephemeralContainers[0].restartPolicy", "Forbidden spec.ephemeralContainers[0].lifecycle", "Forbidden spec.ephemeralContainers",
		}},
		{"pod", []string{"metadata.annotations={kubernetes.io/config.mirror: a}", "spec.nodeName=node", "spec.resourceClaims=[{}]"}, []string{"Forbidden []"}},

		{"daemonset", []string{"spec.updateStrategy={rollingUpdate: {maxUnavailable: x, maxSurge: 0}}"}, []string{
			"Invalid spec.updateStrategy.rollingUpdate.maxUnavailable", "Required spec.updateStrategy.rollingUpdate.maxUnavailable",
		}},
		{"daemonset", []string{"spec.updateStrategy={rollingUpdate: {maxUnavailable: 0%, maxSurge: 00%}}"}, []string{"Required spec.updateStrategy.rollingUpdate.maxUnavailable"}},

		{"deployment", []string{"spec.strategy={rollingUpdate: {maxUnavailable: 101%, maxSurge: -1}}"}, []string{
			"Invalid spec.strategy.rollingUpdate.maxSurge", "Invalid spec.strategy.rollingUpdate.maxUnavailable",
		}},
		{"budget", []string{"spec.minAvailable=101%", "spec.maxUnavailable=-1"}, []string{"Invalid spec", "Invalid spec.minAvailable", "Invalid spec.maxUnavailable"}},
		{"autoscaler", []string{"spec.metrics=[{type: Pods, external: {metric: {name: m}, target: {type: Value, value: 1}}, resource: {}}]"}, []string{
			"Required spec.metrics[0].pods", "Forbidden spec.metrics[0].external", "Forbidden spec.metrics[0].resource",
		}},

		{"volume", []string{"spec.hostPath-", "spec.local={path: /a}"}, []string{"Required spec.nodeAffinity"}},
		{"volume", []string{"spec.hostPath-", "spec.local={path: /a}", "spec.nodeAffinity={}"}, []string{"Required spec.nodeAffinity.required"}},
		{"attachment", []string{"spec.source={inlineVolumeSpec: {accessModes: [ReadWriteOnce], azureDisk: {diskName: a, diskURI: b}}}"}, []string{
			"Required spec.source.inlineVolumeSpec.csi", "NotSupported spec.source.inlineVolumeSpec.azureDisk.diskURI",
		}},
	} {
		t.Run(tt.manifest+" "+strings.Join(tt.edits, " "), func(t *testing.T) {
			r, obj := manifest(t, tt.manifest, tt.edits...)
			if got := complaints(validateNew(r, obj)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
