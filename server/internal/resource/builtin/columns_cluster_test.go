package builtin_test

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

func TestNetworkingRows(t *testing.T) {
	rules := func(hosts ...string) (list []networkingv1.IngressRule) {
		for _, h := range hosts {
			list = append(list, networkingv1.IngressRule{Host: h})
		}
		return list
	}
	ingress := &networkingv1.Ingress{ObjectMeta: createdAgo("i", time.Hour), Spec: networkingv1.IngressSpec{
		IngressClassName: ptr("nginx"), Rules: rules("a", "b"), TLS: make([]networkingv1.IngressTLS, 1),
	}}
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{Hostname: "lb"}, {IP: "192.0.2.1"}}
	runRows(t, []rowTest{
		{"ingress", ingress, []any{"i", "nginx", "a,b", "192.0.2.1,lb", "80, 443", "60m"}},
		{"ingress for all hosts", &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: rules("", "")}},
			[]any{"", columns.None, "*", "", "80", columns.Unknown}},
		{"ingress of many hosts", &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: rules("a", "b", "c", "d", "")}},
			[]any{"", columns.None, "a,b,c + 2 more...", "", "80", columns.Unknown}},
		{"ingress class", &networkingv1.IngressClass{ObjectMeta: createdAgo("c", time.Hour), Spec: networkingv1.IngressClassSpec{
			Controller: "example.com/x", Parameters: &networkingv1.IngressClassParametersReference{
				APIGroup: ptr("example.com"), Kind: "Params", Name: "p",
			},
		}}, []any{"c", "example.com/x", "Params.example.com/p", "60m"}},
		{"network policy", &networkingv1.NetworkPolicy{ObjectMeta: createdAgo("p", time.Hour), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		}}, []any{"p", "app=db", "60m"}},
		{"service CIDR", &networkingv1.ServiceCIDR{
			ObjectMeta: createdAgo("k", time.Hour), Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16", "fd00::/108"}},
		}, []any{"k", "10.96.0.0/16,fd00::/108", "60m"}},
		{"address", &networkingv1.IPAddress{ObjectMeta: createdAgo("10.96.0.1", time.Hour), Spec: networkingv1.IPAddressSpec{
			ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "kubernetes"},
		}}, []any{"10.96.0.1", "services/default/kubernetes"}},
		{"address without parent", &networkingv1.IPAddress{}, []any{"", columns.None}},
		{"endpoint slice", &discoveryv1.EndpointSlice{
			ObjectMeta: createdAgo("s", time.Hour), AddressType: discoveryv1.AddressTypeIPv4,
			Ports:     []discoveryv1.EndpointPort{{Port: ptr(int32(80))}, {Name: ptr("web")}, {}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1", "10.0.0.2"}}, {Addresses: []string{"10.0.0.3", "10.0.0.4"}}},
		}, []any{"s", "IPv4", "80,web,*", "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...", "60m"}},
		{"endpoint slice empty", &discoveryv1.EndpointSlice{}, []any{"", "", columns.Unset, columns.Unset, columns.Unknown}},
	})
}

func TestRBACRows(t *testing.T) {
	subjects := []rbacv1.Subject{
		{Kind: "User", Name: "ann"}, {Kind: "User", Name: "bob"}, {Kind: "Group", Name: "ops"},
		{Kind: "ServiceAccount", Namespace: "ci", Name: "bot"},
	}
	runRows(t, []rowTest{
		{"role", &rbacv1.Role{ObjectMeta: createdAgo("r", time.Hour)}, []any{"r", "2026-01-02T02:04:05Z"}},
		{"cluster role", &rbacv1.ClusterRole{ObjectMeta: createdAgo("r", time.Hour)}, []any{"r", "2026-01-02T02:04:05Z"}},
		{"role binding", &rbacv1.RoleBinding{
			ObjectMeta: createdAgo("b", time.Hour), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}, Subjects: subjects,
		}, []any{"b", "ClusterRole/view", "60m", "ann, bob", "ops", "ci/bot"}},
		{"cluster role binding", &rbacv1.ClusterRoleBinding{ObjectMeta: createdAgo("b", time.Hour), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "x"}},
			[]any{"b", "ClusterRole/x", "60m", "", "", ""}},
	})
}

func TestStorageRows(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: createdAgo("fast", time.Hour), Provisioner: "csi.example.com", AllowVolumeExpansion: ptr(true)}
	class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	other := class.DeepCopy()
	other.Annotations["storageclass.kubernetes.io/is-default-class"] = "false"
	other.ReclaimPolicy, other.VolumeBindingMode = ptr(corev1.PersistentVolumeReclaimRetain), ptr(storagev1.VolumeBindingWaitForFirstConsumer)
	runRows(t, []rowTest{
		{"default class", class, []any{"fast (default)", "csi.example.com", "Delete", "Immediate", true, "60m"}},
		{"class", other, []any{"fast", "csi.example.com", "Retain", "WaitForFirstConsumer", true, "60m"}},
		{"attributes class", &storagev1.VolumeAttributesClass{ObjectMeta: createdAgo("gold", time.Hour), DriverName: "d"}, []any{"gold", "d", "60m"}},
		{"attachment", &storagev1.VolumeAttachment{
			ObjectMeta: createdAgo("a", time.Hour),
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "csi", NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr("v")},
			},
			Status: storagev1.VolumeAttachmentStatus{Attached: true},
		}, []any{"a", "csi", "v", "n1", true, "60m"}},
		{"CSI node", &storagev1.CSINode{ObjectMeta: createdAgo("n", time.Hour), Spec: storagev1.CSINodeSpec{Drivers: make([]storagev1.CSINodeDriver, 2)}},
			[]any{"n", int64(2), "60m"}},
		{"CSI driver", &storagev1.CSIDriver{ObjectMeta: createdAgo("d", time.Hour), Spec: storagev1.CSIDriverSpec{
			AttachRequired: ptr(false), StorageCapacity: ptr(true), TokenRequests: []storagev1.TokenRequest{{Audience: "a"}, {Audience: "b"}},
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"Persistent", "Ephemeral"},
		}}, []any{"d", false, false, true, "a,b", false, "Persistent,Ephemeral", "60m"}},
		{"CSI driver empty", &storagev1.CSIDriver{}, []any{"", true, false, false, columns.Unset, false, columns.None, columns.Unknown}},
		{"capacity", &storagev1.CSIStorageCapacity{ObjectMeta: createdAgo("c", 0), StorageClassName: "fast", Capacity: ptr(resource.MustParse("1Ti"))},
			[]any{"c", ago(0).UTC().Format(time.RFC3339)}},
		{"definition", &apiextensionsv1.CustomResourceDefinition{ObjectMeta: createdAgo("ds.x.io", 0), Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "x.io", Scope: "Namespaced", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "D", ShortNames: []string{"b", "a"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v2", Served: true, Storage: true}, {Name: "v1", Served: true}, {Name: "v0"}},
		}, Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{{Type: "Established", Status: "True"}}}},
			[]any{"ds.x.io", "Namespaced", "v1,v2(storage)", ago(0).UTC().Format(time.RFC3339), "x.io", "D", "b,a", true}},
		{"taint of devices", &resourcev1.DeviceTaintRule{ObjectMeta: createdAgo("d", time.Hour), Spec: resourcev1.DeviceTaintRuleSpec{
			Taint: resourcev1.DeviceTaint{Key: "a/k", Value: "v", Effect: "NoExecute", TimeAdded: ptr(ago(time.Minute))},
		}}, []any{"d", "a/k", "v", "NoExecute", "60s", "60m"}},
		{"taint of devices without a time", &resourcev1.DeviceTaintRule{ObjectMeta: createdAgo("d", time.Hour)}, []any{"d", "", "", "", columns.Unknown, "60m"}},
	})
}

func TestPolicyRows(t *testing.T) {
	binding := func(ref *admissionv1.ParamRef) *admissionv1.ValidatingAdmissionPolicyBinding {
		return &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: createdAgo("b", time.Hour),
			Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "p", ParamRef: ref},
		}
	}
	runRows(t, []rowTest{
		{"validating webhooks", &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: createdAgo("w", time.Hour), Webhooks: make([]admissionv1.ValidatingWebhook, 3),
		}, []any{"w", int64(3), "60m"}},
		{"policy", &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: createdAgo("p", time.Hour), Spec: admissionv1.ValidatingAdmissionPolicySpec{
			Validations: make([]admissionv1.Validation, 2), ParamKind: &admissionv1.ParamKind{APIVersion: "example.com/v1", Kind: "Limit"},
		}}, []any{"p", int64(2), "example.com/v1/Limit", "60m"}},
		{"binding", binding(nil), []any{"b", "p", columns.Unset, "60m"}},
		{"binding to a name", binding(&admissionv1.ParamRef{Name: "x"}), []any{"b", "p", "*/x", "60m"}},
		{"binding to a name in a namespace", binding(&admissionv1.ParamRef{Name: "x", Namespace: "ns"}), []any{"b", "p", "ns/x", "60m"}},
		{"binding to labels", binding(&admissionv1.ParamRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}),
			[]any{"b", "p", "a=b", "60m"}},
	})
}

func TestSystemRows(t *testing.T) {
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: createdAgo("r", time.Hour), Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: "kubernetes.io/kubelet-serving", Username: "ann", ExpirationSeconds: ptr(int32(3600)),
	}}
	issued := request.DeepCopy()
	issued.Status.Certificate = []byte("x")
	issued.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	denied := issued.DeepCopy()
	denied.Status = certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved}, {Type: certificatesv1.CertificateDenied}, {Type: certificatesv1.CertificateFailed},
	}}
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: createdAgo("s", time.Hour), Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "system"}, MatchingPrecedence: 100,
		DistinguisherMethod: &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
	}}
	dangling := schema.DeepCopy()
	dangling.Status.Conditions = []flowcontrolv1.FlowSchemaCondition{
		{Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse},
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: createdAgo("c", time.Hour)}
	reserved := claim.DeepCopy()
	reserved.DeletionTimestamp = &metav1.Time{Time: epoch}
	reserved.Status.Allocation = &resourcev1.AllocationResult{}
	reserved.Status.ReservedFor = make([]resourcev1.ResourceClaimConsumerReference, 1)
	runRows(t, []rowTest{
		{"request", request, []any{"r", "60m", "kubernetes.io/kubelet-serving", "ann", "60m", "Pending"}},
		{"request issued", issued, []any{"r", "60m", "kubernetes.io/kubelet-serving", "ann", "60m", "Approved,Issued"}},
		{"request denied", denied, []any{"r", "60m", "kubernetes.io/kubelet-serving", "ann", "60m", "Denied,Failed"}},
		{"request empty", &certificatesv1.CertificateSigningRequest{}, []any{"", columns.Unknown, columns.None, "", columns.None, "Pending"}},
		{"pod request", &certificatesv1.PodCertificateRequest{ObjectMeta: createdAgo("r", time.Hour), Spec: certificatesv1.PodCertificateRequestSpec{
			PodName: "p", ServiceAccountName: "a", NodeName: "n", SignerName: "example.com/s", UnverifiedUserAnnotations: map[string]string{"x.y/b": "2", "x.y/a": "1"},
		}}, []any{"r", "p", "a", "n", "example.com/s", "Pending", "x.y/a=1,x.y/b=2"}},
		{"pod request denied", &certificatesv1.PodCertificateRequest{Status: certificatesv1.PodCertificateRequestStatus{Conditions: []metav1.Condition{{Type: "Denied"}}}},
			[]any{"", "", "", "", "", "Denied", columns.None}},
		{"lease", &coordinationv1.Lease{ObjectMeta: createdAgo("l", time.Hour), Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr("n1")}},
			[]any{"l", "n1", "60m"}},
		{"priority class", &schedulingv1.PriorityClass{
			ObjectMeta: createdAgo("high", time.Hour), Value: 1000, GlobalDefault: true, PreemptionPolicy: ptr(corev1.PreemptNever),
		}, []any{"high", int64(1000), true, "60m", "Never"}},
		{"flow schema", schema, []any{"s", "system", int64(100), "ByUser", "60m", "?"}},
		{"flow schema looked at", dangling, []any{"s", "system", int64(100), "ByUser", "60m", "False"}},
		{"priority level", &flowcontrolv1.PriorityLevelConfiguration{
			ObjectMeta: createdAgo("p", time.Hour), Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
				Type: "Limited", Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					NominalConcurrencyShares: ptr(int32(30)),
					LimitResponse: flowcontrolv1.LimitResponse{Queuing: &flowcontrolv1.QueuingConfiguration{
						Queues: 64, HandSize: 6, QueueLengthLimit: 50,
					}},
				},
			},
		}, []any{"p", "Limited", int64(30), int64(64), int64(6), int64(50), "60m"}},
		{"priority level exempt", &flowcontrolv1.PriorityLevelConfiguration{
			ObjectMeta: createdAgo("p", time.Hour), Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: "Exempt"},
		}, []any{"p", "Exempt", columns.None, columns.None, columns.None, columns.None, "60m"}},
		{"claim", claim, []any{"c", "pending", "60m"}},
		{"claim reserved and deleted", reserved, []any{"c", "deleted,allocated,reserved", "60m"}},
		{"storage version", &apiserverinternalv1alpha1.StorageVersion{
			ObjectMeta: createdAgo("apps.deployments", time.Hour), Status: apiserverinternalv1alpha1.StorageVersionStatus{
				CommonEncodingVersion: ptr("apps/v1"),
				StorageVersions:       []apiserverinternalv1alpha1.ServerStorageVersion{{APIServerID: "a", EncodingVersion: "apps/v1"}},
			},
		}, []any{"apps.deployments", "apps/v1", "a=apps/v1", "60m"}},
		{"migration", &storagemigrationv1.StorageVersionMigration{
			ObjectMeta: createdAgo("m", time.Hour),
			Spec:       storagemigrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Group: "apps", Resource: "deployments"}},
		}, []any{"m", "deployments.apps", "Unknown"}},
		{"migration at its end", &storagemigrationv1.StorageVersionMigration{
			ObjectMeta: createdAgo("m", time.Hour),
			Spec:       storagemigrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Resource: "pods"}},
			Status: storagemigrationv1.StorageVersionMigrationStatus{Conditions: []metav1.Condition{
				{Type: "Running", Status: metav1.ConditionFalse}, {Type: "Succeeded", Status: metav1.ConditionTrue}, {Type: "Other", Status: metav1.ConditionTrue},
			}},
		}, []any{"m", "pods", "Succeeded"}},
	})
}
