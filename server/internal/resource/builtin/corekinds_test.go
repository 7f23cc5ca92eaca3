package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// prepared returns a new object as the registry has it before validation.
func prepared(t *testing.T, text string) (*resource.Resource, resource.Object) {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatal(err)
	}
	r := builtin.Table().ByKind(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
	obj, _, strict, err := r.DecodeBody(resource.MediaTypeYAML, []byte(text))
	if err != nil || len(strict) > 0 {
		t.Fatal(strict, err)
	}
	if r.Strategy.Default != nil {
		r.Strategy.Default(obj)
	}
	if r.Strategy.PrepareForCreate != nil {
		r.Strategy.PrepareForCreate(obj)
	}
	return r, obj
}

// TestValidateCoreKinds: all that is wrong is told, in kube-apiserver's order and at its paths.
func TestValidateCoreKinds(t *testing.T) {
	const (
		node      = "{apiVersion: v1, kind: Node, metadata: {name: a}, "
		endpoints = "{apiVersion: v1, kind: Endpoints, metadata: {name: a}, subsets: [{"
		limits    = "{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{"
		quota     = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {"
		namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: a}, spec: "
		event     = "{apiVersion: v1, kind: Event, metadata: {name: a, namespace: a}, "
		newEvent  = "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: a, namespace: a}, regarding: {namespace: b}, eventTime: '2020-01-01T00:00:00.000000Z', reportingInstance: a, action: a, reason: a, "
	)
	for _, tt := range []struct {
		object string
		want   []string
	}{
		{node + "spec: {taints: [{key: a, effect: NoExecute, value: a b}, {key: a, effect: NoExecute}]}}", []string{"Invalid metadata.taints[0].value", "Duplicate metadata.taints[1]"}},
		{node + "spec: {podCIDR: 10.0.0.0/24, podCIDRs: [a]}}", nil}, // the first form counts
		{node + "spec: {podCIDRs: [10.0.0.0/24, 10.1.0.0/24]}}", []string{"Invalid spec.podCIDRs"}},
		{node + "spec: {podCIDRs: ['fd00::/64', 10.1.0.0/24]}}", nil},
		{node + "spec: {podCIDRs: ['fd00::/64', 10.1.0.0/24, 'fd01::/64']}}", []string{"Invalid spec.podCIDRs"}},
		{node + "spec: {podCIDRs: [10.0.0.0/24, a]}}", []string{"Invalid spec.podCIDRs[1]", "InternalError spec.podCIDRs", "Invalid spec.podCIDRs"}},
		{node + "status: {capacity: {cpu: 1.5, pods: 1.5, a.example/b: 1.5}}}",
			[]string{"Invalid status.capacity.a.example/b", "Invalid status.capacity.pods", "Invalid status.allocatable.a.example/b", "Invalid status.allocatable.pods"}},
		{endpoints + "addresses: [{ip: 127.0.0.1, hostname: a.b, nodeName: a b}], ports: [{port: 1, appProtocol: a b}]}]}",
			[]string{"Invalid subsets[0].addresses[0].hostname", "Invalid subsets[0].addresses[0].nodeName", "Invalid subsets[0].addresses[0].ip", "Invalid subsets[0].ports[0].appProtocol"}},
		{endpoints + "notReadyAddresses: [{ip: a}]}]}", []string{"Invalid subsets[0].notReadyAddresses[0].ip", "Invalid subsets[0].notReadyAddresses[0].ip"}},
		// A server that listens on the loopback only publishes that.
		{"{apiVersion: v1, kind: Endpoints, metadata: {name: kubernetes, namespace: default}, subsets: [{addresses: [{ip: 127.0.0.1}]}]}", nil},
		{endpoints + "addresses: [{ip: 'FD00::A'}]}]}", nil}, // not the usual form, but clear
		{limits + "type: a}]}}", []string{"Invalid spec.limits[0].type"}},
		{limits + "type: example.com/a, max: {a: 1}}]}}", []string{"Invalid spec.limits[0].max[a]"}},
		{limits + "type: Container, max: {storage: 1}}]}}",
			[]string{"Invalid spec.limits[0].max[storage]", "Invalid spec.limits[0].default[storage]", "Invalid spec.limits[0].defaultRequest[storage]"}},
		{limits + "type: Container, min: {cpu: 2}, max: {cpu: 1}}]}}",
			[]string{"Invalid spec.limits[0].min[cpu]", "Invalid spec.limits[0].defaultRequest[cpu]", "Invalid spec.limits[0].default[cpu]"}},
		{limits + "type: Container, min: {cpu: 1e30}, max: {cpu: 1}, defaultRequest: {cpu: 1Ei}, maxLimitRequestRatio: {cpu: 10}}]}}", []string{
			"Invalid spec.limits[0].min[cpu]", "Invalid spec.limits[0].defaultRequest[cpu]", "Invalid spec.limits[0].defaultRequest[cpu]",
			"Invalid spec.limits[0].defaultRequest[cpu]", "Invalid spec.limits[0].default[cpu]", "Invalid spec.limits[0].maxLimitRequestRatio[cpu]",
		}}, // of an amount that has been compared, the value overflows to another one
		{limits + "type: Pod, min: {cpu: 1}, max: {cpu: 2}, maxLimitRequestRatio: {cpu: 3, memory: 0.5}}]}}",
			[]string{"Invalid spec.limits[0].maxLimitRequestRatio[cpu]", "Invalid spec.limits[0].maxLimitRequestRatio[memory]"}},
		{limits + "type: PersistentVolumeClaim}]}}", []string{"Required spec.limits[0].limits"}},
		{quota + "count/a.example: 1.5, a: 1}}}", []string{"Invalid spec.hard[a]", "Invalid spec.hard[a]", "Invalid spec.hard[count/a.example]"}},
		{quota + "requests.hugepages-2Mi: 1, pods: 1}}}", nil},
		{quota + "pods: 1, services: 1}, scopes: [Terminating, NotTerminating]}}", []string{"Invalid spec.scopes", "Invalid spec.scopes"}}, // one for both that do not fit
		{quota + "pods: 1, cpu: 1}, scopes: [BestEffort]}}", []string{"Invalid spec.scopes"}},
		{quota + "pods: 1}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [a]}]}}}", nil},
		{quota + "}, scopeSelector: {matchExpressions: [{}]}}}",
			[]string{"Invalid spec.scopeSelector.matchExpressions.scopeName", "Invalid spec.scopeSelector.matchExpressions.operator"}},
		{quota + "}, scopeSelector: {matchExpressions: [{scopeName: BestEffort, operator: DoesNotExist}]}}}",
			[]string{"Invalid spec.scopeSelector.matchExpressions.operator"}},
		{quota + "services: 1}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In}, {scopeName: VolumeAttributesClass, operator: Exists, values: [a]}]}}}",
			[]string{
				"Invalid spec.scopeSelector.matchExpressions", "Required spec.scopeSelector.matchExpressions.values",
				"Invalid spec.scopeSelector.matchExpressions.values",
			}},
		{quota + "}, scopeSelector: {matchExpressions: [{scopeName: BestEffort, operator: Exists}, {scopeName: NotBestEffort, operator: Exists}]}}}",
			[]string{"Invalid spec.scopeSelector.matchExpressions"}},
		{namespace + "{finalizers: [a, example.com/a]}}", []string{"Invalid spec.finalizers"}},
		{event + "involvedObject: {namespace: b}}", []string{"Invalid involvedObject.namespace"}},
		{event + "involvedObject: {namespace: a}, eventTime: '2020-01-01T00:00:00.000000Z', reportingInstance: a, action: a}",
			[]string{"Required reportingComponent", "Invalid reportingComponent", "Invalid reportingComponent", "Required reason"}},
		{newEvent + "reportingController: a, type: Normal}", nil}, // of a new event, the namespaces may differ
		{newEvent + "reportingController: a b, type: a, series: {count: 1}, deprecatedCount: 1}",
			[]string{"Invalid reportingController", "Invalid series.count", "Required series.lastObservedTime", "Invalid type", "Invalid count"}},
	} {
		t.Run(tt.object, func(t *testing.T) {
			r, obj := prepared(t, tt.object)
			if got := complaints(validateNew(r, obj)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestEventsStay: of an event only the series goes on.
func TestEventsStay(t *testing.T) {
	const event = "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: a, namespace: a}, eventTime: '2020-01-01T00:00:00.000000Z', note: "
	r, old := prepared(t, event+"a}")
	_, counted := prepared(t, event+"a, series: {count: 2, lastObservedTime: '2020-01-01T00:00:00.000000Z'}}")
	if errs := r.Strategy.ValidateUpdate(counted, old); len(errs) > 0 {
		t.Errorf("a series was refused: %v", errs)
	}
	_, other := prepared(t, event+"b, type: Normal}")
	if got := complaints(r.Strategy.ValidateUpdate(other, old)); !slices.Equal(got, []string{"Invalid message", "Invalid type"}) {
		t.Errorf("another note and type: %q", got)
	}
}

// TestCoreWarnings: what nothing uses any more is told to whoever writes it.
func TestCoreWarnings(t *testing.T) {
	for object, want := range map[string]string{
		"{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {externalID: a}}":                                               "spec.externalID: this field is deprecated, and is unused by Kubernetes",
		"{apiVersion: v1, kind: Endpoints, metadata: {name: a}, subsets: [{addresses: [{ip: 'FD00::A'}]}]}":                      `subsets[0].addresses[0].ip: IPv6 address "FD00::A" should be in RFC 5952 canonical format ("fd00::a")`,
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, annotations: {kubernetes.io/enforce-mountable-secrets: a}}}": "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
	} {
		r, obj := prepared(t, object)
		if got := strings.Join(r.Strategy.Warnings(obj, nil), "; "); got != want {
			t.Errorf("%s: %q, not %q", object, got, want)
		}
	}
	if text := builtin.Table().Lookup("", "v1", "endpoints").Deprecation; !strings.Contains(text, "discovery.k8s.io/v1 EndpointSlice") {
		t.Errorf("Endpoints are deprecated: %q", text)
	}
}
