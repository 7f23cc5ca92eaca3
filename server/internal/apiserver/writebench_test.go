package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// benchWriter writes through the whole HTTP handler, over a store in memory and
// without a connection.
type benchWriter struct {
	b      *testing.B
	server *Server
	answer bytes.Buffer // the last answer
}

func newBenchWriter(b *testing.B) *benchWriter {
	return &benchWriter{b: b, server: newCluster(b, func(s *setup) { s.config.HTTP2Server = HTTP2Levelwire }).server}
}

// do sends a request and keeps its answer.
func (w *benchWriter) do(method, path, mediaType, userAgent string, body []byte) {
	r, err := http.NewRequest(method, path, bytes.NewReader(body))
	must(w.b, err)
	r.Header.Set("Authorization", "Bearer "+testToken)
	r.Header.Set("Content-Type", mediaType)
	r.Header.Set("User-Agent", userAgent)
	w.answer.Reset()
	into := &answerWriter{header: http.Header{}, body: &w.answer}
	if w.server.ServeHTTP(into, r); into.status >= http.StatusMultipleChoices {
		w.b.Fatalf("%s %s: status %d: %s", method, path, into.status, w.answer.Bytes())
	}
}

// answerWriter keeps an answer in a buffer that the next one uses again.
type answerWriter struct {
	header http.Header
	body   *bytes.Buffer
	status int
}

func (w *answerWriter) Header() http.Header         { return w.header }
func (w *answerWriter) WriteHeader(status int)      { w.status = status }
func (w *answerWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// The written objects: as many as make each one's last state rest in the cache.
const benchObjects = 512

// run calls write in turns with the number of each object and what the last
// write of it has answered, and reports processor time as BenchmarkCreate does.
// Every write changes the object.
func (w *benchWriter) run(write func(turn, object int, last []byte)) {
	last := make([][]byte, benchObjects)
	once := func(i int) {
		object := i % benchObjects
		write(i, object, last[object])
		last[object] = append(last[object][:0], w.answer.Bytes()...)
	}
	for i := range 2 * benchObjects {
		once(i)
	}
	w.b.ReportAllocs()
	before := processorTime(w.b)
	w.b.ResetTimer()
	for i := range w.b.N {
		once(i + 2*benchObjects)
	}
	w.b.ReportMetric(float64(processorTime(w.b)-before)/float64(w.b.N), "cpu-ns/op")
}

// runningPod is a pod as a cluster has it while it runs.
func runningPod() *corev1.Pod {
	at := metav1.Unix(1_790_000_000, 0)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            "NAME",
			Labels:          map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-1", "pod-template-hash": "5d4f8c7b9d"},
			Annotations:     map[string]string{"turn": "TURN"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f", UID: "4a1c0b1e-0000-4000-8000-000000000000"}},
		},
		Spec: ordinaryPodSpec(),
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}}, StartTime: &at,
			QOSClass: corev1.PodQOSBurstable,
		},
	}
	pod.Spec.NodeName = "node-1"
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	for i := range pod.Spec.Containers {
		started := true
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: pod.Spec.Containers[i].Name, Ready: true, Started: &started, Image: pod.Spec.Containers[i].Image,
			ImageID:     "registry.example.com/team/image@sha256:5f2b8e0c1d3a4f6e7b8c9d0a1b2c3d4e5f60718293a4b5c6d7e8f90112233445",
			ContainerID: "containerd://5f2b8e0c1d3a4f6e7b8c9d0a1b2c3d4e5f60718293a4b5c6d7e8f90112233445",
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		})
	}
	return pod
}

const (
	benchKubelet    = "kubelet/v1.37.2 (linux/amd64) kubernetes/0000000"
	benchController = "kube-controller-manager/v1.37.2 (linux/amd64) kubernetes/0000000"
)

// pods creates the pods and gives each a status, as a kubelet does.
func (w *benchWriter) pods() {
	body, err := json.Marshal(runningPod())
	must(w.b, err)
	for i := range benchObjects {
		named := bytes.ReplaceAll(body, []byte("NAME"), fmt.Appendf(nil, "o-%08d", i))
		w.do(http.MethodPost, "/api/v1/namespaces/default/pods", "application/json", benchController, named)
		w.do(http.MethodPut, podPath(i)+"/status", "application/json", benchKubelet, named)
	}
}

func podPath(i int) string { return fmt.Sprintf("/api/v1/namespaces/default/pods/o-%08d", i) }

// BenchmarkWrite changes objects that exist: a controller puts a pod with another
// annotation, a kubelet patches a condition of one, a kubelet renews its lease. It
// reports what BenchmarkCreate does.
func BenchmarkWrite(b *testing.B) {
	b.Run("put/pod", func(b *testing.B) {
		w := newBenchWriter(b)
		w.pods()
		w.run(func(turn, object int, last []byte) {
			if last == nil {
				w.do(http.MethodPatch, podPath(object), string(types.MergePatchType), benchController, fmt.Appendf(nil, `{"metadata":{"annotations":{"turn":"%08d"}}}`, turn))
				return
			}
			head, tail, _ := bytes.Cut(last, []byte(`"turn":"`))
			body := append(fmt.Appendf(bytes.Clone(head), `"turn":"%08d`, turn), tail[8:]...)
			w.do(http.MethodPut, podPath(object), "application/json", benchController, body)
		})
	})
	for _, kind := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType, types.JSONPatchType} {
		name, _, _ := strings.Cut(strings.TrimPrefix(string(kind), "application/"), "+")
		b.Run(name+"/status", func(b *testing.B) {
			w := newBenchWriter(b)
			w.pods()
			w.run(func(turn, object int, _ []byte) {
				state, at := corev1.ConditionTrue, metav1.Unix(1_790_000_000+int64(turn), 0).UTC().Format("2006-01-02T15:04:05Z")
				if turn/benchObjects%2 == 0 {
					state = corev1.ConditionFalse
				}
				body := fmt.Appendf(nil, `{"status":{"$setElementOrder/conditions":[{"type":"PodReadyToStartContainers"},{"type":"Initialized"},{"type":"Ready"},{"type":"ContainersReady"},{"type":"PodScheduled"}],`+
					`"conditions":[{"lastTransitionTime":%[2]q,"status":%[1]q,"type":"Ready"},{"lastTransitionTime":%[2]q,"status":%[1]q,"type":"ContainersReady"}]}}`, state, at)
				switch kind {
				case types.MergePatchType:
					body = fmt.Appendf(nil, `{"status":{"conditions":[{"lastTransitionTime":%[2]q,"status":%[1]q,"type":"Ready"},{"lastTransitionTime":%[2]q,"status":%[1]q,"type":"ContainersReady"}]}}`, state, at)
				case types.JSONPatchType:
					body = fmt.Appendf(nil, `[{"op":"replace","path":"/status/conditions/2/status","value":%q},{"op":"replace","path":"/status/conditions/2/lastTransitionTime","value":%q}]`, state, at)
				}
				w.do(http.MethodPatch, podPath(object)+"/status", string(kind), benchKubelet, body)
			})
		})
	}
	b.Run("merge-patch/endpointslice", func(b *testing.B) {
		w := newBenchWriter(b)
		const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
		endpoints := func(unready int) []byte {
			var body bytes.Buffer
			for i := range 100 {
				fmt.Fprintf(&body, `,{"addresses":["10.64.0.%d"],"conditions":{"ready":%t,"serving":%[2]t,"terminating":false},"nodeName":"node-%[1]d","targetRef":{"kind":"Pod","namespace":"default","name":"pod-%[1]d"}}`, i, i != unready)
			}
			return body.Bytes()[1:]
		}
		for i := range benchObjects {
			w.do(http.MethodPost, slices, "application/json", benchController, fmt.Appendf(nil,
				`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"o-%08d"},"addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],"endpoints":[%s]}`, i, endpoints(-1)))
		}
		w.run(func(turn, object int, _ []byte) {
			w.do(http.MethodPatch, fmt.Sprintf("%s/o-%08d", slices, object), string(types.MergePatchType), benchController,
				fmt.Appendf(nil, `{"metadata":{"annotations":{"turn":"%08d"}},"endpoints":[%s]}`, turn, endpoints(turn/benchObjects%100)))
		})
	})
	b.Run("put/lease", func(b *testing.B) {
		w := newBenchWriter(b)
		const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
		seconds, at := int32(40), metav1.NewMicroTime(metav1.Unix(1_790_000_000, 1000).Time)
		for i := range benchObjects {
			node := fmt.Sprintf("o-%08d", i)
			body, err := json.Marshal(&coordinationv1.Lease{
				TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
				ObjectMeta: metav1.ObjectMeta{Name: node, OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "Node", Name: node, UID: "4a1c0b1e-0000-4000-8000-000000000000",
				}}},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &at},
			})
			must(b, err)
			w.do(http.MethodPost, leases, "application/json", benchKubelet, body)
		}
		w.run(func(turn, object int, last []byte) {
			path := fmt.Sprintf("%s/o-%08d", leases, object)
			if last == nil {
				w.do(http.MethodGet, path, "", benchKubelet, nil)
				last = bytes.Clone(w.answer.Bytes())
			}
			head, tail, _ := bytes.Cut(last, []byte(`"renewTime":"`))
			at := metav1.Unix(1_790_000_000+int64(turn), 0).UTC().Format(metav1.RFC3339Micro)
			w.do(http.MethodPut, path, "application/json", benchKubelet, bytes.Join([][]byte{head, []byte(`"renewTime":"`), []byte(at), tail[len(at):]}, nil))
		})
	})
}
