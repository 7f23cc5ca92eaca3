package builtin_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// fieldLabels are the kinds that Kubernetes gives field labels of their own, with these, and with
// what it says of others: all that the conversion functions of k8s.io/kubernetes/pkg/apis accept.
var fieldLabels = map[string]struct {
	labels  sets.Set[string]
	refusal string // of a field "a"
}{
	"v1 Pod": {sets.New("metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
		"spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs",
		"status.nominatedNodeName", "spec.host"), "field label not supported: a"},
	"v1 Node":                  {sets.New("metadata.name", "spec.unschedulable"), "field label not supported: a"},
	"v1 ReplicationController": {sets.New("metadata.name", "metadata.namespace", "status.replicas"), "field label not supported: a"},
	"v1 Event": {sets.New("metadata.name", "metadata.namespace", "involvedObject.kind", "involvedObject.namespace",
		"involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
		"involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"), "field label not supported: a"},
	"events.k8s.io/v1 Event": {sets.New("metadata.name", "metadata.namespace", "regarding.kind", "regarding.namespace",
		"regarding.name", "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion",
		"regarding.fieldPath", "reason", "reportingController", "type"), "field label not supported: a"},
	"v1 Namespace": {sets.New("metadata.name", "status.phase"), "field label not supported: a"},
	"v1 Secret":    {sets.New("metadata.name", "metadata.namespace", "type"), "field label not supported: a"},
	"v1 Service":   {sets.New("metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"), "field label not supported: a"},
	"batch/v1 Job": {sets.New("metadata.name", "metadata.namespace", "status.successful"), `field label "a" not supported for Job`},
	csr:            {sets.New("metadata.name", "spec.signerName"), "field label not supported: a"},
	trustBundle:    {sets.New("metadata.name", "spec.signerName"), "field label not supported: a"},
	podRequest:     {sets.New("metadata.name", "spec.signerName", "spec.podName", "spec.nodeName"), "field label not supported: a"},
	"resource.k8s.io/v1 ResourceSlice": {sets.New("metadata.name", "spec.nodeName", "spec.driver", "spec.pool.name"),
		"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a"},
}

const (
	csr         = "certificates.k8s.io/v1 CertificateSigningRequest"
	trustBundle = "certificates.k8s.io/v1 ClusterTrustBundle"
	podRequest  = "certificates.k8s.io/v1 PodCertificateRequest"
)

// TestFieldLabels: every kind is selected by the fields by which Kubernetes selects it, and by no others.
func TestFieldLabels(t *testing.T) {
	usual := sets.New("metadata.name", "metadata.namespace")
	all := usual.Clone()
	for _, kind := range fieldLabels {
		all = all.Union(kind.labels)
	}
	seen := sets.New[string]()
	for _, r := range builtin.Resources() {
		kind := r.GroupVersion().String() + " " + r.Kind
		seen.Insert(kind)
		want, own := fieldLabels[kind]
		if !own {
			want.labels, want.refusal = usual, `"a" is not a known field selector: only "metadata.name", "metadata.namespace"`
		}
		checkFieldLabels(t, r, all, want.labels)
		if _, err := r.FieldLabel("a"); err == nil || err.Error() != want.refusal {
			t.Errorf("%s says %v, want %s", kind, err, want.refusal)
		}
	}
	for kind := range fieldLabels {
		if !seen.Has(kind) {
			t.Errorf("there is no kind %s", kind)
		}
	}
}

func checkFieldLabels(t *testing.T, r *resource.Resource, all, want sets.Set[string]) {
	t.Helper()
	for name := range all {
		if _, err := r.FieldLabel(name); (err == nil) != want.Has(name) {
			t.Errorf("%s: selecting by %s: %v; Kubernetes can: %t", r.GroupVersionKind(), name, err, want.Has(name))
		}
	}
}
