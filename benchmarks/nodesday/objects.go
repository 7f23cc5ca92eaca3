package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
)

const (
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	nodePath  = "/api/v1/nodes"
	podPath   = "/api/v1/namespaces/day/pods"
	slicePath = "/apis/discovery.k8s.io/v1/namespaces/day/endpointslices"
)

func nodeName(i int) string  { return "node-" + strconv.Itoa(i) }
func sliceName(i int) string { return "service-" + strconv.Itoa(i) + "-slice" }

// podName has the generation that a rolling restart counts up.
func podName(i, generation int) string { return fmt.Sprintf("pod-%d-%d", i, generation) }

// sentNow is the annotation from which watchers read how long an event took.
func sentNow() string {
	return fmt.Sprintf(`"annotations":{%q:"%019d"}`, load.SentAnnotation, time.Now().UnixNano())
}

func post(path, body string) load.Request {
	return load.Request{Method: http.MethodPost, Path: path, Body: []byte(body), Header: []hpack.HeaderField{{Name: "content-type", Value: "application/json"}}}
}

// mergePatch changes an object whatever its version is: the clients keep none.
func mergePatch(path, body string) load.Request {
	return load.Request{Method: http.MethodPatch, Path: path, Body: []byte(body), Header: []hpack.HeaderField{{Name: "content-type", Value: "application/merge-patch+json"}}}
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func newLease(i int) load.Request {
	return post(leasePath, fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%[1]q},"spec":{"holderIdentity":%[1]q,"leaseDurationSeconds":40,"renewTime":%[2]q}}`, nodeName(i), moment(time.Now())))
}

func renewal(i int) load.Request {
	return mergePatch(leasePath+"/"+nodeName(i), fmt.Sprintf(`{"metadata":{%s},"spec":{"renewTime":%q}}`, sentNow(), moment(time.Now())))
}

// conditions of a healthy node; their messages are as long as a kubelet's.
func conditions() string {
	now := time.Now().UTC().Format(time.RFC3339)
	var b strings.Builder
	for _, c := range [][3]string{{"MemoryPressure", "False", "KubeletHasSufficientMemory"}, {"DiskPressure", "False", "KubeletHasNoDiskPressure"}, {"PIDPressure", "False", "KubeletHasSufficientPID"}, {"Ready", "True", "KubeletReady"}} {
		fmt.Fprintf(&b, `,{"type":%q,"status":%q,"reason":%q,"message":"kubelet has what it needs for this condition","lastHeartbeatTime":%q}`, c[0], c[1], c[2], now)
	}
	return `"conditions":[` + b.String()[1:] + `]`
}

func newNode(i int) load.Request {
	return post(nodePath, fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%[1]q,"labels":{"kubernetes.io/hostname":%[1]q}},"status":{%[2]s,"capacity":{"cpu":"32","memory":"128Gi","pods":"110"},`+
		`"addresses":[{"type":"InternalIP","address":"10.%[3]d.%[4]d.%[5]d"}],"nodeInfo":{"kubeletVersion":"v1.37.0","osImage":"simulated"}}}`, nodeName(i), conditions(), i>>16&255, i>>8&255, i&255))
}

func nodeStatus(i int) load.Request {
	return mergePatch(nodePath+"/"+nodeName(i)+"/status", fmt.Sprintf(`{"metadata":{%s},"status":{%s}}`, sentNow(), conditions()))
}

func newPod(d *day, i, generation int) load.Request {
	return post(podPath, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":"service-%d"},%s},"spec":{"nodeName":%q,"automountServiceAccountToken":false,"terminationGracePeriodSeconds":30,`+
		`"containers":[{"name":"main","image":"registry.example.com/shop/web:v1.2.3","env":[{"name":"LOG_LEVEL","value":"info"}],"resources":{"requests":{"cpu":"250m","memory":"256Mi"}}}]}}`,
		podName(i, generation), i/podsPerSlice, sentNow(), nodeName(i%d.nodes)))
}

func podStatus(i, generation int, phase string, ready bool) load.Request {
	now, status := time.Now().UTC().Format(time.RFC3339), "False"
	if ready {
		status = "True"
	}
	return mergePatch(podPath+"/"+podName(i, generation)+"/status", fmt.Sprintf(`{"metadata":{%[1]s},"status":{"phase":%[2]q,"startTime":%[3]q,"podIP":"10.1.2.3","hostIP":"10.0.0.1",`+
		`"conditions":[{"type":"Initialized","status":"True","lastTransitionTime":%[3]q},{"type":"Ready","status":%[4]q,"lastTransitionTime":%[3]q},{"type":"ContainersReady","status":%[4]q,"lastTransitionTime":%[3]q},{"type":"PodScheduled","status":"True","lastTransitionTime":%[3]q}],`+
		`"containerStatuses":[{"name":"main","image":"registry.example.com/shop/web:v1.2.3","imageID":"","ready":%[5]t,"restartCount":0,"state":{}}]}}`, sentNow(), phase, now, status, ready))
}

func podDelete(i, generation int) load.Request {
	return load.Request{Method: http.MethodDelete, Path: podPath + "/" + podName(i, generation) + "?gracePeriodSeconds=0"}
}

// endpoints of a slice, of which one is not ready.
func endpoints(slice, unready int) string {
	var b strings.Builder
	for i := range podsPerSlice {
		pod := slice*podsPerSlice + i
		fmt.Fprintf(&b, `,{"addresses":["10.%d.%d.%d"],"conditions":{"ready":%t,"serving":%[4]t,"terminating":false},"nodeName":%q,"targetRef":{"kind":"Pod","namespace":"day","name":%q}}`,
			64+pod>>16&127, pod>>8&255, pod&255, i != unready, nodeName(pod), podName(pod, 0))
	}
	return `"endpoints":[` + b.String()[1:] + `]`
}

func newSlice(i int) load.Request {
	return post(slicePath, fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":%q,"labels":{"kubernetes.io/service-name":"service-%d"}},"addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],%s}`, sliceName(i), i, endpoints(i, -1)))
}

func sliceUpdate(i, unready int) load.Request {
	return mergePatch(slicePath+"/"+sliceName(i), fmt.Sprintf(`{"metadata":{%s},%s}`, sentNow(), endpoints(i, unready)))
}
