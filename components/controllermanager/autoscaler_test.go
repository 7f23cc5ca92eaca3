package controller_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/kubelet"
	"github.com/levelwire/levelwire/components/metrics"
	"github.com/levelwire/levelwire/internal/testwait"
)

// TestAutoscaler: a Deployment gets the replicas that its pods' memory asks for, as
// metrics.k8s.io shows it, by the rights of the controller's own role.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	var installers atomic.Int64
	server, err := metrics.New(c.connectAs("system:serviceaccount:kube-system:metrics-server", "system:serviceaccounts", "system:serviceaccounts:kube-system"),
		metrics.Options{Installer: func() (*client.Client, error) { installers.Add(1); return c.connect(), nil }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.start(c.ctx, "metrics", server.Run)
	c.startManager()
	labels := map[string]string{"app": "web"}
	one := int32(1)
	deployments := client.For[*appsv1.Deployment](c.client).Namespace("default")
	_, err = deployments.Create(c.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{kubelet.AnnotationMemoryUsage: "100Mi"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/web"}}},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := testwait.Stable(t, "the pod runs and is measured", func() (*appsv1.Deployment, bool) {
		d, err := deployments.Get(c.ctx, "web", metav1.GetOptions{})
		response, asked := c.client.Raw(c.ctx, client.RawRequest{Path: "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"})
		if asked == nil {
			_ = response.Body.Close()
		}
		return d, err == nil && d.Status.AvailableReplicas == 1 && asked == nil && response.StatusCode == 200
	})
	if installers.Load() != 1 {
		t.Errorf("%d clients of the administrator, want one that installs", installers.Load())
	}
	half := resource.MustParse("50Mi")
	autoscalers := client.For[*autoscalingv2.HorizontalPodAutoscaler](c.client).Namespace("default")
	h, err := autoscalers.Create(c.ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 10,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceMemory, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &half},
		}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The next pods use as much, and there are more of them a while later.
	d = awaitFrom(c, deployments, d, "more pods", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas != 1 })
	h = awaitFrom(c, autoscalers, h, "why", func(h *autoscalingv2.HorizontalPodAutoscaler) bool { return h.Status.LastScaleTime != nil })
	if *d.Spec.Replicas != 2 || h.Status.DesiredReplicas != 2 || len(h.Status.CurrentMetrics) != 1 || h.Status.CurrentMetrics[0].Resource.Current.AverageValue.Value() != 100<<20 {
		t.Errorf("%d pods, because of %+v: want twice as many", *d.Spec.Replicas, h.Status)
	}
}

// TestAutoscalerReadsMetricsOfOthers: the metrics of the types Pods, Object and External
// are those that aggregated servers have, asked as adapters of Kubernetes are.
func TestAutoscalerReadsMetricsOfOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.startManager()
	labels := map[string]string{"app": "web"}
	two := int32(2)
	deployments := client.For[*appsv1.Deployment](c.client).Namespace("default")
	_, err := deployments.Create(c.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/web"}}},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(c, deployments, "web", "both pods run", func(d *appsv1.Deployment) bool { return d != nil && d.Status.AvailableReplicas == 2 })
	pods, err := client.For[*corev1.Pod](c.client).Namespace("default").List(c.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	value := func(of, value string) string {
		return `{"describedObject":{"name":"` + of + `"},"metric":{"name":"x"},"timestamp":"2026-01-01T00:00:00Z","value":"` + value + `"}`
	}
	const custom, external = "/apis/custom.metrics.k8s.io/v1beta2", "/apis/external.metrics.k8s.io/v1beta1"
	answers := map[string]string{
		custom + "/namespaces/default/pods/*/inflight?labelSelector=app%3Dweb": value(pods.Items[0].Name, "15") + "," + value(pods.Items[1].Name, "15"),
		custom + "/namespaces/default/services/web/requests":                   value("web", "2k"),
		custom + "/namespaces/default/metrics/tickets":                         value("default", "70"),
		external + "/namespaces/default/queue|length?labelSelector=queue%3Dw":  `{"metricName":"q","value":"30"},{"metricName":"q","value":"60500m"}`,
		external + "/namespaces/default/empty":                                 ``,
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := strings.TrimSuffix(r.URL.Path, "/"); path == custom || path == external {
			fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":%q,"resources":[]}`, strings.TrimPrefix(path, "/apis/"))
			return
		}
		asked := r.URL.Path
		if r.URL.RawQuery != "" {
			asked += "?" + r.URL.RawQuery
		}
		items, ok := answers[asked]
		if !ok {
			if strings.Contains(asked, "/namespaces/") {
				t.Errorf("unexpected request for %s", asked)
			}
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"items":[%s]}`, items)
	})
	serveAggregated(c, handler, custom, external)
	testwait.Stable(t, "the servers of metrics are asked", func() (any, bool) {
		for _, path := range []string{custom + "/namespaces/default/metrics/tickets", external + "/namespaces/default/empty"} {
			response, err := c.client.Raw(c.ctx, client.RawRequest{Path: path})
			if err != nil {
				return err, false
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return path + ": " + response.Status, false
			}
		}
		return nil, true
	})

	quantity := func(s string) *resource.Quantity { q := resource.MustParse(s); return &q }
	average := func(s string) autoscalingv2.MetricTarget {
		return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity(s)}
	}
	total := func(s string) autoscalingv2.MetricTarget {
		return autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: quantity(s)}
	}
	metric := func(name string) autoscalingv2.MetricIdentifier { return autoscalingv2.MetricIdentifier{Name: name} }
	queue := autoscalingv2.MetricIdentifier{Name: "queue|length", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "w"}}}
	autoscalers := client.For[*autoscalingv2.HorizontalPodAutoscaler](c.client).Namespace("default")
	h, err := autoscalers.Create(c.ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 10,
		Metrics: []autoscalingv2.MetricSpec{
			{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: metric("inflight"), Target: average("10")}},
			{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{Metric: metric("requests"), Target: total("1900"), // tolerated
				DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: "web"}}},
			{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{Metric: metric("tickets"), Target: average("20"),
				DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "elsewhere"}}},
			{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: queue, Target: average("15")}},
			{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: metric("empty"), Target: total("1")}},
		},
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 10, PeriodSeconds: 60}},
		}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Of the five the queue asks for the most: 90.5 in seven parts of 15 at most.
	h = awaitFrom(c, autoscalers, h, "the queue's seven pods", func(h *autoscalingv2.HorizontalPodAutoscaler) bool {
		return h.Status.DesiredReplicas == 7 && len(h.Status.CurrentMetrics) == 4
	})
	m := h.Status.CurrentMetrics
	for i, got := range []*resource.Quantity{m[0].Pods.Current.AverageValue, m[1].Object.Current.Value, m[2].Object.Current.AverageValue, m[3].External.Current.AverageValue} {
		if want := []string{"15", "2k", "35", "45250m"}[i]; got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("metric %d is %s, not %s", i, got, want)
		}
	}
	if spec, err := deployments.Get(c.ctx, "web", metav1.GetOptions{}); err != nil || *spec.Spec.Replicas != 7 {
		t.Errorf("%v, %v", spec, err)
	}

	// A metric that cannot be read says so, and nothing is scaled down.
	_, err = autoscalers.Create(c.ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "failing"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 10,
		Metrics: []autoscalingv2.MetricSpec{
			{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: metric("empty"), Target: total("1")}},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(c, autoscalers, "failing", "the condition says what fails", func(h *autoscalingv2.HorizontalPodAutoscaler) bool {
		if h == nil {
			return false
		}
		for _, cond := range h.Status.Conditions {
			if cond.Type == autoscalingv2.ScalingActive && cond.Reason == "FailedGetExternalMetric" {
				return cond.Status == corev1.ConditionFalse && strings.Contains(cond.Message, "no metrics returned from external metrics API")
			}
		}
		return false
	})
}

// serveAggregated serves the groups and versions, each as a path, by a handler behind
// APIServices. Of all Services, the one for metrics may be on the loopback.
func serveAggregated(c *cluster, handler http.Handler, paths ...string) {
	c.t.Helper()
	const namespace, name = "kube-system", "metrics-server"
	s := httptest.NewTLSServer(handler)
	c.t.Cleanup(s.Close)
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	port, protocol, ready, https := int32(at.Port()), corev1.ProtocolTCP, true, "https"
	_, err := client.For[*corev1.Service](c.client).Namespace(namespace).Create(c.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: https, Port: 443}}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = client.For[*discoveryv1.EndpointSlice](c.client).Namespace(namespace).Create(c.ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: &https, Port: &port, Protocol: &protocol}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range paths {
		group, version, _ := strings.Cut(strings.TrimPrefix(path, "/apis/"), "/")
		_, err = client.For[*apiregistrationv1.APIService](c.client).Create(c.ctx, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: version + "." + group},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: group, Version: version, GroupPriorityMinimum: 100, VersionPriority: 100, InsecureSkipTLSVerify: true,
				Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
	}
}
