package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// acting says of each kind that is not in the table of inactive ones what acts on
// it: a folder or file of this repository, or, after "data:", why nothing has to.
var acting = map[schema.GroupKind]string{
	{Group: "", Kind: "ConfigMap"}:                                                    "data: clients read it",
	{Group: "", Kind: "Endpoints"}:                                                    "components/controllermanager/internal/endpointslicemirroring",
	{Group: "", Kind: "Event"}:                                                        "data: clients read it",
	{Group: "", Kind: "LimitRange"}:                                                   "server/internal/admission/limits.go",
	{Group: "", Kind: "Namespace"}:                                                    "components/controllermanager/internal/namespace",
	{Group: "", Kind: "Node"}:                                                         "components/controllermanager/internal/nodelifecycle",
	{Group: "", Kind: "Pod"}:                                                          "components/kubelet",
	{Group: "", Kind: "PodTemplate"}:                                                  "data: clients read it",
	{Group: "", Kind: "ReplicationController"}:                                        "components/controllermanager/internal/replicaset",
	{Group: "", Kind: "ResourceQuota"}:                                                "server/internal/admission",
	{Group: "", Kind: "Secret"}:                                                       "data: clients read it",
	{Group: "", Kind: "Service"}:                                                      "components/proxy",
	{Group: "", Kind: "ServiceAccount"}:                                               "server/internal/serviceaccount",
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          "server/internal/admission",
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   "server/internal/admission",
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     "server/internal/admission",
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        "server/internal/admission",
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: "server/internal/admission",
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   "server/internal/admission",
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:                 "server/internal/customresource",
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             "server/internal/aggregation",
	{Group: "apps", Kind: "ControllerRevision"}:                                       "components/controllermanager/internal/revisionhistory",
	{Group: "apps", Kind: "DaemonSet"}:                                                "components/controllermanager/internal/daemonset",
	{Group: "apps", Kind: "Deployment"}:                                               "components/controllermanager/internal/deployment",
	{Group: "apps", Kind: "ReplicaSet"}:                                               "components/controllermanager/internal/replicaset",
	{Group: "apps", Kind: "StatefulSet"}:                                              "components/controllermanager/internal/statefulset",
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:                           "components/controllermanager/internal/podautoscaler",
	{Group: "batch", Kind: "CronJob"}:                                                 "components/controllermanager/internal/cronjob",
	{Group: "batch", Kind: "Job"}:                                                     "components/controllermanager/internal/job",
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:                        "data: clients read it",
	{Group: "coordination.k8s.io", Kind: "Lease"}:                                     "components/controllermanager/internal/nodelifecycle",
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:                                "components/proxy",
	{Group: "events.k8s.io", Kind: "Event"}:                                           "data: clients read it",
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                       "server/internal/flowcontrol",
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}:       "server/internal/flowcontrol",
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                                   "server/internal/registry/service",
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                "server/internal/admission/ingressclass.go",
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      "server/internal/admission/podrules/runtimeclass.go",
	{Group: "policy", Kind: "PodDisruptionBudget"}:                                    "components/controllermanager/internal/disruption",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         "server/internal/rbac",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  "server/internal/rbac",
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                                "server/internal/rbac",
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                         "server/internal/rbac",
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               "server/internal/admission/priority.go",
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   "server/internal/admission/storageclass.go",
}

// TestEveryKindActsOrWarns: of each served kind it is known what acts on it, or
// clients that write it are warned. A kind cannot be both.
func TestEveryKindActsOrWarns(t *testing.T) {
	served := map[schema.GroupKind]bool{}
	for _, r := range builtin.Table().All() {
		kind := r.GroupVersionKind().GroupKind()
		served[kind] = true
		place, acts := acting[kind]
		warning := builtin.Inactive(kind)
		switch {
		case acts == (warning != ""):
			t.Errorf("%s: acts %v, warning %q; say in the one table or in the other what becomes of it", kind, acts, warning)
		case acts && !strings.HasPrefix(place, "data: "):
			if _, err := os.Stat(filepath.Join("../../../..", place)); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		case !acts:
			obj := r.New()
			if got := r.Strategy.Warnings(obj, nil); len(got) == 0 || got[0] != warning {
				t.Errorf("%s: a write warns %q", kind, got)
			}
		}
	}
	for kind := range acting {
		if !served[kind] {
			t.Errorf("%s acts and is not served", kind)
		}
	}
}
