package applybody

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/client/scheme"
)

// configuration is an apply configuration as client-go generates them.
type configuration struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Paused     *bool             `json:"paused,omitempty"`
}

func (*configuration) IsApplyConfiguration() {}

func TestBodyHasWhatWasSet(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "a"}
	zero := int32(0)
	for name, test := range map[string]struct {
		obj  any
		want string
	}{
		"no creationTimestamp, status, strategy or resources": {
			&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				Replicas: &zero,
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c"}},
					Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				}},
			}},
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":0,` +
				`"template":{"spec":{"containers":[{"name":"c"}],"volumes":[{"emptyDir":{},"name":"v"}]}}}}`,
		},
		"a targetPort that was not set": {
			&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
				{Port: 80}, {Port: 81, TargetPort: intstr.FromInt32(8081)}}}},
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80},{"port":81,"targetPort":8081}]}}`,
		},
		"elements and entries stay": {
			&networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}},
			`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"ingress":[{}]}}`,
		},
		"empty strings in lists and maps stay": {
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": ""}},
				Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Verbs: []string{"get"}}}},
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"labels":{"l":""},"name":"a"},"rules":[{"apiGroups":[""],"verbs":["get"]}]}`,
		},
		"a nil list that is not omitted": {
			&rbacv1.ClusterRole{ObjectMeta: meta},
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"}}`,
		},
		"quantities": {
			&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": {}}}}}}},
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"2","memory":"0"}}}]}}`,
		},
		"an apply configuration": {
			&configuration{APIVersion: "apps/v1", Kind: "Deployment", Metadata: map[string]string{"name": "a", "namespace": "ns"}, Paused: new(bool)},
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"ns"},"paused":false}`,
		},
		"unstructured as it is": {
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": nil, "n": int64(0)}},
			`{"apiVersion":"v1","data":null,"kind":"ConfigMap","metadata":{"name":"a"},"n":0}`,
		},
	} {
		body, err := Of(scheme.Default, test.obj, schema.GroupVersionKind{})
		if err != nil || string(body.JSON) != test.want || body.Name != "a" {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, body.JSON, test.want)
		}
	}
}

func TestKindOfTheEndpoint(t *testing.T) {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}}
	body, err := Of(scheme.Default, obj, schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"})
	if want := `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a","namespace":"ns"}}`; err != nil || string(body.JSON) != want || body.Namespace != "ns" {
		t.Errorf("got %s, %v", body.JSON, err)
	}
}

func TestWhatCannotBeApplied(t *testing.T) {
	var none *corev1.Pod
	for want, obj := range map[string]any{
		"nil":                         none,
		"cannot be applied":           struct{}{},
		"metadata.name":               &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "a"}},
		"managedFields":               &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{}}}},
		"does not say its apiVersion": &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}},
		"nil (<nil>)":                 nil,
	} {
		if _, err := Of(scheme.Default, obj, schema.GroupVersionKind{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want an error with %q, got %v", obj, want, err)
		}
	}
}
