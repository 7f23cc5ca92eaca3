package metrics

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/kubelet"
)

// window is the time that a usage is said to be measured over.
const window = 15 * time.Second

var groupVersion = metricsv1beta1.SchemeGroupVersion.String()

// routes serves discovery and the two resources.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	const base = "GET /apis/metrics.k8s.io/v1beta1"
	verbs := metav1.Verbs{"get", "list"}
	mux.HandleFunc(base, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, &metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion,
			APIResources: []metav1.APIResource{
				{Name: "nodes", Kind: "NodeMetrics", Verbs: verbs}, {Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: verbs},
			},
		})
	})
	handle := func(pattern string, serve func(*http.Request) (any, error)) {
		mux.HandleFunc(base+pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := serve(r)
			if err != nil {
				answerError(w, err)
				return
			}
			answer(w, http.StatusOK, result)
		})
	}
	handle("/nodes", s.listNodes)
	handle("/nodes/{name}", s.getNode)
	handle("/pods", s.listPods)
	handle("/namespaces/{namespace}/pods", s.listPods)
	handle("/namespaces/{namespace}/pods/{name}", s.getPod)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answerError(w, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource",
		}})
	})
	return mux
}

func answer(w http.ResponseWriter, code int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(document) // an error means that the client has gone
}

func answerError(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	if known, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // What the client returns is not wrapped.
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	answer(w, int(status.Code), status)
}

// pods reads the pods of a namespace, or of all, from the API server's cache.
func (s *Server) pods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	list, err := client.For[*corev1.Pod](s.client).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (s *Server) listPods(r *http.Request) (any, error) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	pods, err := s.pods(r.Context(), r.PathValue("namespace"))
	if err != nil {
		return nil, err
	}
	list := &metricsv1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{Kind: "PodMetricsList", APIVersion: groupVersion}, Items: []metricsv1beta1.PodMetrics{}}
	used := kubelet.Usage(pods)
	for _, pod := range pods {
		if containers := used[pod.UID]; containers != nil && selector.Matches(labels.Set(pod.Labels)) {
			list.Items = append(list.Items, s.podMetrics(pod, containers))
		}
	}
	return list, nil
}

func (s *Server) getPod(r *http.Request) (any, error) {
	pods, err := s.pods(r.Context(), r.PathValue("namespace")) // others share its load
	if err != nil {
		return nil, err
	}
	used := kubelet.Usage(pods)
	for _, pod := range pods {
		if containers := used[pod.UID]; containers != nil && pod.Name == r.PathValue("name") {
			return s.podMetrics(pod, containers), nil
		}
	}
	return nil, apierrors.NewNotFound(metricsv1beta1.Resource("pods"), r.PathValue("name"))
}

func (s *Server) podMetrics(pod *corev1.Pod, containers []kubelet.ContainerUsage) metricsv1beta1.PodMetrics {
	m := metricsv1beta1.PodMetrics{
		TypeMeta:   metav1.TypeMeta{Kind: "PodMetrics", APIVersion: groupVersion},
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels, CreationTimestamp: metav1.NewTime(s.opts.Now())},
		Timestamp:  metav1.NewTime(s.opts.Now()), Window: metav1.Duration{Duration: window},
	}
	for _, c := range containers {
		m.Containers = append(m.Containers, metricsv1beta1.ContainerMetrics{Name: c.Name, Usage: quantities(c)})
	}
	return m
}

func quantities(u kubelet.ContainerUsage) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(u.MilliCPU, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(u.Memory, resource.BinarySI),
	}
}

// nodes returns the metrics of the nodes that match.
func (s *Server) nodes(ctx context.Context, matches func(*corev1.Node) bool) ([]metricsv1beta1.NodeMetrics, error) {
	nodes, err := client.For[*corev1.Node](s.client).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	pods, err := s.pods(ctx, "")
	if err != nil {
		return nil, err
	}
	used := kubelet.Usage(pods)
	byNode := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
	}
	list := []metricsv1beta1.NodeMetrics{}
	for _, node := range nodes.Items {
		if matches(node) {
			list = append(list, s.nodeMetrics(node, byNode[node.Name], used))
		}
	}
	return list, nil
}

func (s *Server) nodeMetrics(node *corev1.Node, pods []*corev1.Pod, used map[types.UID][]kubelet.ContainerUsage) metricsv1beta1.NodeMetrics {
	now := metav1.NewTime(s.opts.Now())
	return metricsv1beta1.NodeMetrics{
		TypeMeta:   metav1.TypeMeta{Kind: "NodeMetrics", APIVersion: groupVersion},
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, CreationTimestamp: now},
		Timestamp:  now, Window: metav1.Duration{Duration: window}, Usage: quantities(kubelet.NodeUsage(pods, used)),
	}
}

func (s *Server) listNodes(r *http.Request) (any, error) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	items, err := s.nodes(r.Context(), func(node *corev1.Node) bool { return selector.Matches(labels.Set(node.Labels)) })
	return &metricsv1beta1.NodeMetricsList{TypeMeta: metav1.TypeMeta{Kind: "NodeMetricsList", APIVersion: groupVersion}, Items: items}, err
}

func (s *Server) getNode(r *http.Request) (any, error) {
	items, err := s.nodes(r.Context(), func(node *corev1.Node) bool { return node.Name == r.PathValue("name") })
	if err == nil && len(items) == 0 {
		err = apierrors.NewNotFound(metricsv1beta1.Resource("nodes"), r.PathValue("name"))
	}
	if err != nil {
		return nil, err
	}
	return items[0], nil
}
