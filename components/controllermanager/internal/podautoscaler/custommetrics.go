package podautoscaler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	custommetrics "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalmetrics "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"

	"github.com/levelwire/levelwire/client"
)

// podsMetric computes replicas from a metric that custom.metrics.k8s.io has of each pod.
func (c *Controller) podsMetric(ctx context.Context, in input, spec *autoscalingv2.PodsMetricSource) (proposal, error) {
	p := proposal{metric: "pods metric " + spec.Metric.Name}
	if spec.Target.AverageValue == nil {
		return p, errors.New("invalid pods metric source: no average value target was set")
	}
	values, err := c.readCustom(ctx, in.of.Namespace, "pods", custommetrics.AllObjects, spec.Metric, in.scale.Status.Selector)
	if err != nil {
		return p, fmt.Errorf("failed to get pods metric value: %w", err)
	}
	samples := make(map[string]sample, len(values))
	for i := range values {
		v := &values[i]
		samples[v.DescribedObject.Name] = sample{value: v.Value.MilliValue(), timestamp: v.Timestamp.Time}
	}
	var used usage
	p.replicas, used, err = replicasFor(target{average: spec.Target.AverageValue.MilliValue()}, in.scale.Spec.Replicas, in.pods, samples, in.now)
	if err != nil {
		return p, fmt.Errorf("failed to get pods metric value: %w", err)
	}
	p.status.Pods = &autoscalingv2.PodsMetricStatus{Metric: spec.Metric, Current: autoscalingv2.MetricValueStatus{AverageValue: milli(used.average)}}
	return p, nil
}

// objectMetric computes replicas from a metric that custom.metrics.k8s.io has of one
// object, such as the requests of an Ingress.
func (c *Controller) objectMetric(ctx context.Context, in input, spec *autoscalingv2.ObjectMetricSource) (proposal, error) {
	p := proposal{metric: fmt.Sprintf("%s metric %s", spec.DescribedObject.Kind, spec.Metric.Name)}
	value, err := c.readObject(ctx, in.of.Namespace, spec)
	if err != nil {
		return p, fmt.Errorf("failed to get object metric value: %w", err)
	}
	current, err := p.fromTotal(in, spec.Target, value)
	if err != nil {
		return p, fmt.Errorf("failed to get object metric value: %w", err)
	}
	p.status.Object = &autoscalingv2.ObjectMetricStatus{Metric: spec.Metric, DescribedObject: spec.DescribedObject, Current: current}
	return p, nil
}

// externalMetric computes replicas from the sum of what external.metrics.k8s.io has of a
// metric, such as the length of a queue.
func (c *Controller) externalMetric(ctx context.Context, in input, spec *autoscalingv2.ExternalMetricSource) (proposal, error) {
	p := proposal{metric: "external metric " + spec.Metric.Name}
	value, err := c.readExternal(ctx, in.of.Namespace, spec.Metric)
	if err != nil {
		return p, fmt.Errorf("failed to get %s external metric value: %w", spec.Metric.Name, err)
	}
	current, err := p.fromTotal(in, spec.Target, value)
	if err != nil {
		return p, fmt.Errorf("failed to get %s external metric value: %w", spec.Metric.Name, err)
	}
	p.status.External = &autoscalingv2.ExternalMetricStatus{Metric: spec.Metric, Current: current}
	return p, nil
}

// fromTotal sets the replicas of a metric that is one value, in thousandths, for all pods.
func (p *proposal) fromTotal(in input, wanted autoscalingv2.MetricTarget, value int64) (current autoscalingv2.MetricValueStatus, err error) {
	switch {
	case wanted.AverageValue != nil:
		var average int64
		p.replicas, average = replicasForAverage(value, wanted.AverageValue.MilliValue(), in.scale.Status.Replicas)
		current.AverageValue = milli(average)
	case wanted.Value != nil:
		p.replicas, err = replicasForValue(value, wanted.Value.MilliValue(), in.scale.Spec.Replicas, in.pods)
		current.Value = milli(value)
	default:
		err = errors.New("neither a value target nor an average value target was set")
	}
	return current, err
}

// readObject returns the metric of an object, in thousandths.
func (c *Controller) readObject(ctx context.Context, namespace string, spec *autoscalingv2.ObjectMetricSource) (int64, error) {
	gv, err := schema.ParseGroupVersion(spec.DescribedObject.APIVersion)
	if err != nil {
		return 0, fmt.Errorf("invalid API version of the described object: %w", err)
	}
	kind := schema.GroupKind{Group: gv.Group, Kind: spec.DescribedObject.Kind}
	plural, name := "metrics", "" // of the autoscaler's own namespace
	if kind != (schema.GroupKind{Kind: "Namespace"}) {
		served, err := c.mapper.ByKind(ctx, kind)
		if err != nil {
			return 0, fmt.Errorf("unable to determine the resource of the described object: %w", err)
		}
		plural, name = served.GroupVersionResource().GroupResource().String(), spec.DescribedObject.Name
	}
	values, err := c.readCustom(ctx, namespace, plural, name, spec.Metric, "")
	if err != nil {
		return 0, err
	}
	if len(values) != 1 {
		return 0, fmt.Errorf("the custom metrics API has %d values of %s for one object", len(values), spec.Metric.Name)
	}
	return values[0].Value.MilliValue(), nil
}

// readCustom reads a metric of the named object, of those that pods selects if the name
// is *, or of the namespace itself if there is no name.
func (c *Controller) readCustom(ctx context.Context, namespace, plural, name string, metric autoscalingv2.MetricIdentifier, pods string) ([]custommetrics.MetricValue, error) {
	query := url.Values{}
	if pods != "" {
		query.Set("labelSelector", pods)
	}
	path := []string{custommetrics.SchemeGroupVersion.String(), "namespaces", namespace, plural}
	if name != "" {
		path = append(path, name)
	}
	var list custommetrics.MetricValueList
	if err := c.readMetric(ctx, path, metric, "metricLabelSelector", query, &list); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("unable to get metric %s: no metrics returned from custom metrics API", metric.Name)
	}
	return list.Items, nil
}

// readExternal returns the sum of all values of a metric, in thousandths.
func (c *Controller) readExternal(ctx context.Context, namespace string, metric autoscalingv2.MetricIdentifier) (int64, error) {
	path := []string{externalmetrics.SchemeGroupVersion.String(), "namespaces", namespace}
	var list externalmetrics.ExternalMetricValueList
	if err := c.readMetric(ctx, path, metric, "labelSelector", url.Values{}, &list); err != nil {
		return 0, err
	}
	if len(list.Items) == 0 {
		return 0, fmt.Errorf("unable to get external metric %s: no metrics returned from external metrics API", metric.Name)
	}
	var sum int64
	for i := range list.Items {
		value := list.Items[i].Value.MilliValue()
		if sum > 0 && value > math.MaxInt64-sum || sum < 0 && value < math.MinInt64-sum {
			return 0, fmt.Errorf("the values of external metric %s are too large to be added", metric.Name)
		}
		sum += value
	}
	return sum, nil
}

// maxMetrics bounds what a server of metrics may answer: it is no part of Kubernetes, and
// there is one value for each pod at most.
const maxMetrics = 64 << 20

// readMetric reads the list of a metric below /apis/ and the path: a group and version,
// then names that are escaped here. selectedBy is the parameter for the metric's selector.
func (c *Controller) readMetric(ctx context.Context, path []string, metric autoscalingv2.MetricIdentifier, selectedBy string, query url.Values, list any) error {
	if metric.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(metric.Selector)
		if err != nil {
			return fmt.Errorf("the selector of metric %s: %w", metric.Name, err)
		}
		query.Set(selectedBy, selector.String())
	}
	address := "/apis/" + path[0]
	for _, name := range append(path[1:], metric.Name) {
		address += "/" + url.PathEscape(name)
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	response, err := c.client.Raw(ctx, client.RawRequest{Path: address, Header: http.Header{"Accept": {"application/json"}}})
	if err != nil {
		return fmt.Errorf("unable to get metric %s: %w", metric.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMetrics))
	if err == nil {
		err = client.ResponseError(response, body)
	}
	if err != nil {
		return fmt.Errorf("unable to get metric %s: %w", metric.Name, err)
	}
	if err := json.Unmarshal(body, list); err != nil {
		return fmt.Errorf("unable to get metric %s: what %s answers is no list of values: %w", metric.Name, path[0], err)
	}
	return nil
}
