package builtin_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// statusWrite is a write to the status of a manifest.
type statusWrite struct {
	kind       string
	old, edits []string
	want       []string // what is said; none: allowed
}

// checkStatusWrites checks what is said of writes.
func checkStatusWrites(t *testing.T, writes []statusWrite) {
	t.Helper()
	for _, tt := range writes {
		r, old := manifestAsIs(t, tt.kind, tt.old...)
		_, obj := manifestAsIs(t, tt.kind, tt.edits...)
		if f := r.Strategy.PrepareForStatusUpdate; f != nil {
			f(obj, old)
		}
		var got []string
		for _, err := range r.Strategy.ValidateStatus(obj, old) {
			got = append(got, err.Error())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s %v, then %v:\n%q\nnot\n%q", tt.kind, tt.old, tt.edits, got, tt.want)
		}
	}
}

// TestWorkloadStatus: what is counted is not less than nothing, nor more than all of it, and a
// counter of collisions does not go back.
func TestWorkloadStatus(t *testing.T) {
	const (
		counts    = ": Invalid value: -1: must be greater than or equal to 0"
		replicas  = ": Invalid value: 2: cannot be greater than status.replicas"
		collision = "status.collisionCount: Invalid value: "
	)
	checkStatusWrites(t, []statusWrite{
		{"deployment", nil, []string{"status={replicas: 3, updatedReplicas: 3, readyReplicas: 2, availableReplicas: 1, unavailableReplicas: 2, terminatingReplicas: 1, observedGeneration: 1}"}, nil},
		{"deployment", []string{"status.collisionCount=1"}, []string{"status.collisionCount=2"}, nil},
		{"deployment", []string{"status.collisionCount=2"}, []string{"status.collisionCount=1"}, []string{collision + "1: cannot be decremented"}},
		{"deployment", []string{"status.collisionCount=2"}, nil, []string{collision + "0: cannot be decremented"}},
		{"deployment", nil, []string{"status={replicas: -1, unavailableReplicas: -1, observedGeneration: -1, terminatingReplicas: -1, collisionCount: -1}"}, []string{
			"status.observedGeneration" + counts, "status.replicas" + counts, "status.unavailableReplicas" + counts, "status.terminatingReplicas" + counts, "status.collisionCount" + counts,
			"status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas", "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
			"status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
		}},
		{"deployment", nil, []string{"status={replicas: 1, updatedReplicas: 2, readyReplicas: 2}"}, []string{"status.updatedReplicas" + replicas, "status.readyReplicas" + replicas}},
		{"deployment", nil, []string{"status={replicas: 2, readyReplicas: 1, availableReplicas: 2}"}, []string{"status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"}},
		{"replicaset", nil, []string{"status={replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 2, availableReplicas: 1, observedGeneration: 1}"}, nil},
		{"replicaset", nil, []string{"status={replicas: 1, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: -1, terminatingReplicas: -1}"}, []string{
			"status.availableReplicas" + counts, "status.terminatingReplicas" + counts, "status.fullyLabeledReplicas" + replicas,
		}},
		{"replicaset", nil, []string{"status={replicas: 2, readyReplicas: 1, availableReplicas: 2}"}, []string{"status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"}},
		{"statefulset", nil, []string{"status={replicas: 3, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 2, availableReplicas: 1}"}, nil},
		{"statefulset", []string{"status={replicas: 0, collisionCount: 2}"}, []string{"status={replicas: 2, readyReplicas: 1, currentReplicas: -1, updatedReplicas: 3, availableReplicas: 2}"}, []string{
			"status.currentReplicas" + counts, "status.updatedReplicas: Invalid value: 3: cannot be greater than status.replicas",
			"status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas", collision + "0: cannot be decremented",
		}},
		{"daemonset", nil, []string{"status={currentNumberScheduled: 2, numberMisscheduled: 0, desiredNumberScheduled: 1, numberReady: 3}"}, nil},
		{"daemonset", []string{"status={currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0, collisionCount: 1}"}, []string{"status={currentNumberScheduled: -1, numberMisscheduled: 0, desiredNumberScheduled: -1, numberReady: -1, numberAvailable: -1}"}, []string{
			"status.currentNumberScheduled" + counts, "status.desiredNumberScheduled" + counts, "status.numberReady" + counts, "status.numberAvailable" + counts, collision + "0: cannot be decremented",
		}},
	})
}

// TestTemplateGenerationIsNotTheStatusWriters: the annotation counts the templates of a DaemonSet,
// and writers of the status, who send it or not, do not count.
func TestTemplateGenerationIsNotTheStatusWriters(t *testing.T) {
	const annotation = "deprecated.daemonset.template.generation"
	r, old := manifest(t, "daemonset")
	_, obj := manifestAsIs(t, "daemonset", "metadata.annotations={other: kept}")
	r.Strategy.PrepareForStatusUpdate(obj, old)
	if got, want := obj.GetAnnotations()[annotation], old.GetAnnotations()[annotation]; got != want {
		t.Errorf("the annotation is %q, not %q", got, want)
	}
	if obj.GetAnnotations()["other"] != "kept" {
		t.Error("another annotation does not change with the status")
	}
}

// TestStatusesOfQuotasAndServices: amounts are none below nothing, and addresses those of a load balancer.
func TestStatusesOfQuotasAndServices(t *testing.T) {
	const counts = `: Invalid value: "-1": must be greater than or equal to 0`
	checkStatusWrites(t, []statusWrite{
		{"quota", nil, []string{"status={hard: {cpu: 1, count/a.example.com: 2}, used: {cpu: 500m}}"}, nil},
		{"quota", nil, []string{"status={hard: {cpu: -1}, used: {pods: -1}}"}, []string{"status.hard[cpu]" + counts, "status.used[pods]" + counts}},
		{"service-balanced", nil, []string{"status.loadBalancer.ingress=[{ip: 10.0.0.1, ipMode: VIP}]"}, nil},
		{"service", nil, []string{"status.loadBalancer.ingress=[{}]"}, []string{"status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"}},
	})
}

// TestLabelsOfJobsAfterTheirStatus: a write of a status that takes the labels away leaves those of the pods.
func TestLabelsOfJobsAfterTheirStatus(t *testing.T) {
	r, obj := manifestAsIs(t, "job", "spec.template.metadata.labels={app: a}")
	obj.SetLabels(nil)
	r.Strategy.CompleteStatus(obj)
	if got := obj.GetLabels(); got["app"] != "a" {
		t.Errorf("the labels are %v", got)
	}
}

// TestNodeStatus: a kubelet names its features in order, and its addresses once.
func TestNodeStatus(t *testing.T) {
	checkStatusWrites(t, []statusWrite{
		{"node", nil, []string{"status.declaredFeatures=[A, B/c, Ba]", "status.addresses=[{type: InternalIP, address: 10.0.0.1}, {type: InternalIP, address: '::1'}]"}, nil},
		{"node", nil, []string{"status.capacity={example.com/a: -1}", "status.allocatable={cpu: -1, example.com/a: 500m}"}, []string{
			`status.capacity.example.com/a: Invalid value: "-1": must be greater than or equal to 0`, `status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0`,
			`status.allocatable.example.com/a: Invalid value: "500m": must be an integer`,
		}},
		{"node", nil, []string{"status.declaredFeatures=[B, B, A, a]"}, []string{
			`status.declaredFeatures[1]: Duplicate value: "B"`, `status.declaredFeatures[2]: Invalid value: "A": list must be sorted alphabetically`,
			`status.declaredFeatures[3]: Invalid value: "a": invalid feature name "a": must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes`,
		}},
		{"node", nil, []string{"status.addresses=[{type: InternalIP, address: 10.0.0.1}, {type: InternalIP, address: 10.0.0.1}]"}, []string{`status.addresses[1]: Duplicate value: {"type":"InternalIP","address":"10.0.0.1"}`}},
	})
}

// TestNewNodeStatus: a node may come with its status, which is checked then.
func TestNewNodeStatus(t *testing.T) {
	r, obj := manifest(t, "node", "status.declaredFeatures=[A, A]", "status.nodeInfo={swap: {capacity: 0}}")
	var got []string
	for _, err := range r.Strategy.Validate(obj) {
		got = append(got, err.Error())
	}
	if want := []string{"metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero", `status.declaredFeatures[1]: Duplicate value: "A"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, not %q", got, want)
	}
}

// TestNodeConfigIsDropped: what no kubelet says any more is stored for nodes that had it only.
func TestNodeConfigIsDropped(t *testing.T) {
	for _, tt := range []struct {
		old  string
		want bool
	}{{"status.config-", false}, {"status.config={active: {}}", true}} {
		r, old := manifestAsIs(t, "node", tt.old)
		_, obj := manifestAsIs(t, "node")
		r.Strategy.PrepareForStatusUpdate(obj, old)
		if got := obj.(*corev1.Node).Status.Config != nil; got != tt.want {
			t.Errorf("%s: there is a config: %t", tt.old, got)
		}
	}
}

// TestClaimStatus: a claim says how far storage has grown, or a resource of a driver's own.
func TestClaimStatus(t *testing.T) {
	const statuses = `: supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"`
	checkStatusWrites(t, []statusWrite{
		{"claim", nil, []string{"status={capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi, example.com/a: 1}, allocatedResourceStatuses: {storage: NodeResizePending}}"}, nil},
		{"claim", nil, []string{"status={capacity: {storage: -1}, allocatedResources: {storage: -1, cpu: 1}, allocatedResourceStatuses: {cpu: NodeResizePending}}"}, []string{
			"status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
			`status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"`,
			`status.allocatedResources: Unsupported value: "cpu": supported values: "storage"`,
			"status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity",
		}},
		{"claim", nil, []string{"status={allocatedResourceStatuses: {storage: Other}, allocatedResources: {storage: -500m}}"}, []string{
			`status.allocatedResourceStatuses: Unsupported value: "storage"` + statuses, "status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity",
		}},
	})
}

// TestPodStatusWrites: a kubelet says what the pod's spec lets happen.
func TestPodStatusWrites(t *testing.T) {
	const (
		ended     = "status.containerStatuses=[{name: web, image: i, imageID: i, ready: false, restartCount: 0, state: {terminated: {exitCode: 1}}}]"
		done      = "status.containerStatuses=[{name: web, image: i, imageID: i, ready: false, restartCount: 0, state: {terminated: {exitCode: 0}}}]"
		running   = "status.containerStatuses=[{name: web, image: i, imageID: i, ready: false, restartCount: 0, state: {running: {}}}]"
		never     = "spec.restartPolicy=Never"
		failed    = "spec.restartPolicy=OnFailure"
		subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
		again     = "state: Forbidden: may not be transitioned to non-terminated state"
	)
	rules := func(rules string) string { return "spec.containers.0.restartPolicyRules=" + rules }
	statuses := func(list, name, rest string) string {
		return "status." + list + "=[{name: " + name + ", image: i, imageID: i, ready: false, restartCount: 0, " + rest + "}]"
	}
	claims := []string{"spec.resourceClaims=[{name: gpu, resourceClaimTemplateName: t}]", "spec.containers.0.resources.claims=[{name: gpu, request: one}]"}
	with := func(base []string, edits ...string) []string { return slices.Concat(base, edits) }
	checkStatusWrites(t, []statusWrite{
		{"pod", nil, []string{"status={phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: '::1'}], hostIP: 10.0.0.2, hostIPs: [{ip: 10.0.0.2}], observedGeneration: 1}", "status.conditions=[{type: Ready, status: 'True'}, {type: example.com/gate, status: 'True'}]"}, nil},
		{"pod", nil, []string{"status={observedGeneration: -1, conditions: [{type: -a, status: 'True', observedGeneration: -1}]}"}, []string{
			"status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
			`status.conditions[0].Type: Invalid value: "-a": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			"status.observedGeneration: Invalid value: -1: must be a non-negative integer",
		}},
		{"pod", []string{"status.qosClass=Burstable"}, nil, nil},
		{"pod", []string{"status.qosClass=Burstable"}, []string{"status.qosClass=Guaranteed"}, []string{`status.qosClass: Invalid value: "Guaranteed": field is immutable`}},
		{"pod", nil, []string{"metadata.annotations={kubernetes.io/config.mirror: a}", "spec.nodeName=one"}, []string{"metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation"}},

		// A promised node.
		{"pod", nil, []string{"status.nominatedNodeName=one"}, nil},
		{"pod", []string{"spec.nodeName=one"}, []string{"spec.nodeName=one", "status.nominatedNodeName=two"}, []string{"status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"}},
		{"pod", []string{"spec.nodeName=one", "status.nominatedNodeName=two"}, []string{"spec.nodeName=one", "status.nominatedNodeName=two"}, nil},
		{"pod", nil, []string{"status.nominatedNodeName=-a"}, []string{`status.nominatedNodeName: Invalid value: "-a": ` + subdomain}},

		// Addresses. What was there may stay.
		{"pod", nil, []string{"status={podIP: a, hostIP: 10.0.0.1, hostIPs: [{ip: 10.0.0.2}, {ip: 10.0.0.3}]}"}, []string{
			`status.podIPs[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`, "status.hostIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `hostIP`",
			`status.hostIPs: Invalid value: [{"ip":"10.0.0.2"},{"ip":"10.0.0.3"}]: may specify no more than one IP for each IP family`,
		}},
		{"pod", []string{"status.podIP=010.0.0.1"}, []string{"status.podIP=010.0.0.1"}, nil},
		{"pod", nil, []string{"status={podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: a}]}"}, []string{
			`status.podIPs[1]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`, "status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: a",
			`status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"a"}]: may specify no more than one IP for each IP family`,
		}},

		// Containers that have ended.
		{"pod", []string{ended}, []string{running}, nil},
		{"pod", []string{never, ended}, []string{never, ended}, nil},
		{"pod", []string{never, ended}, []string{never}, nil},
		{"pod", []string{never, ended}, []string{never, running}, []string{"status.containerStatuses[0]." + again}},
		{"pod", []string{failed, ended}, []string{failed, running}, nil},
		{"pod", []string{failed, done}, []string{failed, running}, []string{"status.containerStatuses[0]." + again}},
		{"pod", []string{never, ended, "spec.containers.0.restartPolicy=OnFailure"}, []string{running}, nil},
		{"pod", []string{ended, "spec.containers.0.restartPolicy=Never"}, []string{running}, []string{"status.containerStatuses[0]." + again}},
		{"pod", []string{ended, "spec.containers.0.restartPolicy=Never", rules("[{action: Restart, exitCodes: {operator: In, values: [1]}}]")}, []string{running}, nil},
		{"pod", []string{ended, "spec.containers.0.restartPolicy=Never", rules("[{action: Restart, exitCodes: {operator: NotIn, values: [1]}}]")}, []string{running}, []string{"status.containerStatuses[0]." + again}},
		{"pod", []string{never, ended, "spec.containers.1.restartPolicy=Never", "spec.containers.1.restartPolicyRules=[{action: RestartAllContainers, exitCodes: {operator: In, values: [7]}}]"}, []string{running}, nil},
		{"pod", []string{statuses("initContainerStatuses", "prepare", "state: {terminated: {exitCode: 0}}")}, []string{statuses("initContainerStatuses", "prepare", "state: {}")}, nil},
		{"pod", []string{statuses("initContainerStatuses", "other", "state: {terminated: {exitCode: 0}}")}, []string{statuses("initContainerStatuses", "other", "state: {}")}, []string{"status.initContainerStatuses[0]." + again}},
		{"pod", []string{statuses("ephemeralContainerStatuses", "e", "state: {terminated: {exitCode: 1}}")}, []string{statuses("ephemeralContainerStatuses", "e", "state: {}")}, []string{"status.ephemeralContainerStatuses[0]." + again}},

		// Users.
		{"pod", nil, []string{statuses("containerStatuses", "web", "user: {linux: {uid: 4294967295, gid: 0, supplementalGroups: [5]}}")}, nil},
		{"pod", nil, []string{statuses("initContainerStatuses", "prepare", "user: {linux: {uid: 4294967296, gid: -1, supplementalGroups: [5, 2147483648]}}")}, []string{
			"status.initContainerStatuses[0].user.linux.uid: Invalid value: 4294967296: must be between 0 and 4294967295, inclusive",
			"status.initContainerStatuses[0].user.linux.gid: Invalid value: -1: must be between 0 and 2147483647, inclusive",
			"status.initContainerStatuses[0].user.linux.supplementalGroups[1]: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
		}},
		{"pod", nil, []string{"spec.os={name: windows}", statuses("ephemeralContainerStatuses", "e", "user: {linux: {uid: 1, gid: 1}}")}, []string{
			"status.ephemeralContainerStatuses[0].user.linux: Forbidden: cannot be set for a windows pod",
		}},

		// Claims, and how their devices do.
		{"pod", claims, with(claims, "status.resourceClaimStatuses=[{name: gpu, resourceClaimName: web-gpu}]", statuses("containerStatuses", "web", "allocatedResourcesStatus: [{name: 'claim:gpu/one', resources: [{resourceID: a, health: Healthy, message: fine}]}, {name: cpu}]")), nil},
		{"pod", claims, with(claims, "status.resourceClaimStatuses=[{name: other, resourceClaimName: A}, {name: gpu}, {name: gpu}]"), []string{
			"status.resourceClaimStatuses[0].name: Invalid value: \"other\": must match the name of an entry in `spec.resourceClaims`",
			`status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "A": ` + subdomain,
			`status.resourceClaimStatuses[2].name: Duplicate value: "gpu"`,
		}},
		{"pod", claims, with(claims, statuses("containerStatuses", "web", "allocatedResourcesStatus: [{name: 'claim:gpu'}, {name: example.com/a, resources: [{resourceID: a, health: Well, message: ''}, {resourceID: a, health: Unknown}]}]")), []string{
			"status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: \"claim:gpu\": must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty",
			"status.containerStatuses[0].allocatedResourcesStatus[1].name: Invalid value: \"example.com/a\": must match one of the container's resource requests",
			`status.containerStatuses[0].allocatedResourcesStatus[1].resources[0].health: Unsupported value: "Well": supported values: "Healthy", "Unhealthy", "Unknown"`,
			"status.containerStatuses[0].allocatedResourcesStatus[1].resources[0].message: Required value: must be non-empty if specified",
			`status.containerStatuses[0].allocatedResourcesStatus[1].resources[1].resourceID: Duplicate value: "a"`,
		}},
		{"pod", nil, []string{statuses("containerStatuses", "gone", "allocatedResourcesStatus: [{name: example.com/a}]"), statuses("ephemeralContainerStatuses", "e", "allocatedResourcesStatus: [{name: cpu}]")}, []string{
			"status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status",
		}},
		{"pod", nil, []string{"status.extendedResourceClaimStatus={resourceClaimName: c, requestMappings: [{containerName: web, resourceName: cpu, requestName: r}]}", statuses("containerStatuses", "web", "allocatedResourcesStatus: [{name: 'claim:c/r'}]")}, nil},
		{"pod", nil, []string{"status.extendedResourceClaimStatus={}"}, []string{
			"status.extendedResourceClaimStatus.requestMappings: Required value: at least one request mapping is required", "status.extendedResourceClaimStatus.resourceClaimName: Required value",
		}},
		{"pod", nil, []string{"status.extendedResourceClaimStatus={resourceClaimName: c, requestMappings: [{containerName: other, resourceName: cpu, requestName: r}, {containerName: web, resourceName: other, requestName: r}, {containerName: web, resourceName: cpu, requestName: r}, {containerName: web, resourceName: cpu, requestName: r}]}"}, []string{
			`status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "other": must match the name of an entry in spec.initContainers.name or spec.containers.name`,
			`status.extendedResourceClaimStatus.requestMappings[1].resourceName: Invalid value: "other": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests`,
			`status.extendedResourceClaimStatus.requestMappings[3].containerName: Duplicate value: "web"`, `status.extendedResourceClaimStatus.requestMappings[3].resourceName: Duplicate value: "cpu"`,
			`status.extendedResourceClaimStatus.requestMappings[3].requestName: Duplicate value: "r"`,
		}},
	})
}

// TestPodStatusKeepsWhatWritersDoNotKnow: an older kubelet leaves out fields that it has never heard of.
func TestPodStatusKeepsWhatWritersDoNotKnow(t *testing.T) {
	r, old := manifestAsIs(t, "pod", "status={qosClass: Burstable, observedGeneration: 3, resourceClaimStatuses: [{name: gpu}], extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: []}, nodeAllocatableResourceClaimStatuses: [{resourceClaimName: c}]}",
		"status.conditions=[{type: Ready, status: 'True', observedGeneration: 2}, {type: Other, status: 'True', observedGeneration: 1}]")
	_, obj := manifestAsIs(t, "pod", "status.conditions=[{type: Other, status: 'False'}, {type: New, status: 'True'}, {type: Ready, status: 'True', observedGeneration: 3}]")
	r.Strategy.PrepareForStatusUpdate(obj, old)
	s := &obj.(*corev1.Pod).Status
	if s.QOSClass != corev1.PodQOSBurstable || s.ObservedGeneration != 3 || len(s.ResourceClaimStatuses) != 1 || s.ExtendedResourceClaimStatus == nil || len(s.NodeAllocatableResourceClaimStatuses) != 1 {
		t.Errorf("left out, and lost: %+v", s)
	}
	var observed []int64
	for _, c := range s.Conditions {
		observed = append(observed, c.ObservedGeneration)
	}
	if want := []int64{1, 0, 3}; !slices.Equal(observed, want) {
		t.Errorf("the conditions have observed %v, not %v", observed, want)
	}

	_, obj = manifestAsIs(t, "pod", "status={resourceClaimStatuses: [], nodeAllocatableResourceClaimStatuses: []}")
	r.Strategy.PrepareForStatusUpdate(obj, old)
	if s := &obj.(*corev1.Pod).Status; len(s.ResourceClaimStatuses)+len(s.NodeAllocatableResourceClaimStatuses) > 0 {
		t.Errorf("emptied, and still there: %+v", s)
	}
}

// TestPhaseTransitionTime: a volume whose phase changes says when, whatever its writer knows of that.
func TestPhaseTransitionTime(t *testing.T) {
	first, second := `status.lastPhaseTransitionTime="2026-01-01T00:00:00Z"`, `status.lastPhaseTransitionTime="2026-01-02T00:00:00Z"`
	const bound, available = "status.phase=Bound", "status.phase=Available"
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC().Format(time.RFC3339)
		for _, tt := range []struct {
			old, edits []string
			want       string
		}{
			{[]string{available, first}, []string{available}, "2026-01-01T00:00:00Z"},
			{[]string{available, first}, []string{available, second}, "2026-01-02T00:00:00Z"},
			{[]string{available, first}, []string{bound, second}, "2026-01-02T00:00:00Z"},
			{[]string{available, first}, []string{bound, first}, now},
			{[]string{available, first}, []string{bound}, now},
			{[]string{available}, []string{bound}, now},
		} {
			r, old := manifestAsIs(t, "volume", tt.old...)
			_, obj := manifestAsIs(t, "volume", tt.edits...)
			r.Strategy.PrepareForStatusUpdate(obj, old)
			if at := obj.(*corev1.PersistentVolume).Status.LastPhaseTransitionTime; at.UTC().Format(time.RFC3339) != tt.want {
				t.Errorf("%v, then %v: %v, want %s", tt.old, tt.edits, at, tt.want)
			}
		}
	})
}
