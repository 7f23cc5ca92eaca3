package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// listedPod is the i-th of many pods that a Deployment made, as varied as
// they are in clusters: how well a list compresses depends on it. Its JSON has
// 2.9 kB, its protobuf half of that.
func listedPod(i int) *corev1.Pod {
	workload := i / 200
	name, hash := "service-"+strconv.Itoa(workload), fmt.Sprintf("%010x", 0x5f3a91c07+workload*7919)
	at := func(seconds int) metav1.Time {
		return metav1.Unix(1_772_000_000+int64(i%100_000+seconds), 0)
	}
	pod := testPod(fmt.Sprintf("team-%02d", workload%50), fmt.Sprintf("%s-%s-%05x", name, hash, i),
		map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop", "pod-template-hash": hash}, fmt.Sprintf("node-%d", i*7919%1000))
	pod.UID, pod.GenerateName, pod.CreationTimestamp = types.UID(fmt.Sprintf("%08x-3c1d-4e5f-8a9b-%012x", 1, i*104729)), name+"-"+hash+"-", at(0)
	pod.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + hash,
		UID: types.UID(fmt.Sprintf("%08x-3c1d-4e5f-8a9b-%012x", 2, workload)), Controller: new(true), BlockOwnerDeletion: new(true)}}
	main := &pod.Spec.Containers[0]
	main.Image, main.ImagePullPolicy = "registry.example.com/shop/"+name+":v1.2.3", corev1.PullIfNotPresent
	main.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
	main.Env = []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "GOMAXPROCS", Value: "2"}}
	main.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	main.VolumeMounts = []corev1.VolumeMount{{Name: fmt.Sprintf("kube-api-access-%05x", i), ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
	main.TerminationMessagePath, main.TerminationMessagePolicy = "/dev/termination-log", corev1.TerminationMessageReadFile
	pod.Spec.RestartPolicy, pod.Spec.DNSPolicy, pod.Spec.ServiceAccountName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default"
	pod.Spec.TerminationGracePeriodSeconds, pod.Spec.SchedulerName, pod.Spec.EnableServiceLinks = new(int64(30)), corev1.DefaultSchedulerName, new(true)
	address := fmt.Sprintf("10.%d.%d.%d", 64+i>>16, i>>8&255, i&255)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.3." + strconv.Itoa(i%250), PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		StartTime: new(at(1)), QOSClass: corev1.PodQOSBurstable}
	for _, condition := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: at(len(condition))})
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, Started: new(true), Image: main.Image,
		ImageID:     fmt.Sprintf("registry.example.com/shop/%s@sha256:%064x", name, workload*7919),
		ContainerID: fmt.Sprintf("containerd://%016x%016x%016x%016x", uint64(i)*0x9e3779b97f4a7c15, uint64(i)*0xbf58476d1ce4e5b9, uint64(i)*0x94d049bb133111eb, uint64(i)*0xd6e8feb86659fd93),
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(3)}}}}
	return pod
}

// fill puts pods of about 2.9 kB into the cache behind a cluster's back: the
// store is not what is measured.
func fill(b testing.TB, c *cluster, count int) {
	b.Helper()
	base := c.caches[c.pods].Current().Revision()
	objects := make([]*watchcache.Object, 0, count)
	for i := range count {
		rev := base + 1
		pod := listedPod(i)
		stored, err := c.pods.Encode(b.Context(), pod)
		must(b, err)
		object, err := c.caches[c.pods].Decode(c.pods.Key(pod.Namespace, pod.Name), stored, rev)
		must(b, err)
		objects = append(objects, object)
	}
	slices.SortFunc(objects, func(a, b *watchcache.Object) int { return strings.Compare(a.Key, b.Key) })
	c.caches[c.pods].Compress(objects)
	_, err := c.caches[c.pods].Fill(objects, base+1)
	must(b, err)
}

// cpuTime is what this process has used.
func cpuTime(t testing.TB) time.Duration {
	var usage syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkList serves lists of 200,000 pods without a network: the first one
// of a kind, and those that follow.
func BenchmarkList(b *testing.B) {
	c := newCluster(b)
	fill(b, c, 200_000)
	benchmarkLists(b, c)
}

// BenchmarkListCompressed serves lists of 100,000 pods that are held as they are, and
// compressed.
func BenchmarkListCompressed(b *testing.B) {
	for name, compressed := range map[string]bool{"plain": false, "compressed": true} {
		b.Run(name, func(b *testing.B) {
			c := newCluster(b, func(s *setup) { s.cache.CompressObjects = compressed })
			fill(b, c, 100_000)
			benchmarkLists(b, c)
		})
	}
}

func benchmarkLists(b *testing.B, c *cluster) {
	for _, form := range []struct{ name, path, accept, encoding string }{
		{"json", "", "application/json", "identity"},
		{"json-gzip", "", "application/json", "gzip"},
		{"protobuf", "", protobufType, "identity"},
		{"protobuf-gzip", "", protobufType, "gzip"},
		{"metadata", "", metaListType, "identity"},
		{"metadata-gzip", "", metaListType, "gzip"},
		{"stream-json", "&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", "application/json", "identity"}, //passes: the watch ends by it
		{"stream-protobuf", "&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", protobufType, "identity"},   //passes: the watch ends by it
	} {
		serve := func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime(b)
			rounds := 0
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "/api/v1/pods?resourceVersion=0"+form.path, nil)
				must(b, err)
				r.Header.Set("Authorization", "Bearer "+testToken)
				r.Header.Set("Accept", form.accept)
				r.Header.Set("Accept-Encoding", form.encoding)
				w := &discardWriter{header: http.Header{}}
				c.server.ServeHTTP(w, r)
				b.SetBytes(w.bytes)
				b.ReportMetric(float64(w.bytes)/1e6, "MB")
				rounds++
			}
			b.ReportMetric((cpuTime(b)-before).Seconds()/float64(rounds), "cpu-s/op")
			b.ReportMetric(float64(c.caches[c.pods].Stats().FormBytes)/1e6, "forms-MB")
			b.ReportMetric(float64(c.caches[c.pods].Stats().HeldBytes)/1e6, "held-MB")
		}
		b.Run(form.name, serve)
	}
}
