package metrics

import (
	"context"
	"net"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/levelwire/levelwire/client"
)

const apiServiceName = "v1beta1.metrics.k8s.io"

// install creates what makes the server part of the API, as the manifest of Kubernetes'
// metrics server does, or brings it up to date. The manifest's binding to
// system:auth-delegator is left out: the server asks the API server about no user.
func (s *Server) install(ctx context.Context, by *client.Client, address *net.TCPAddr, caBundle []byte) error {
	reader := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list", "watch"}}}
	users := []rbacv1.PolicyRule{{APIGroups: []string{metricsv1beta1.GroupName}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list", "watch"}}}
	forUsers := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:aggregated-metrics-reader", Labels: map[string]string{
		"rbac.authorization.k8s.io/aggregate-to-admin": "true", "rbac.authorization.k8s.io/aggregate-to-edit": "true", "rbac.authorization.k8s.io/aggregate-to-view": "true",
	}}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: s.opts.ServiceAccount, Namespace: namespace}}
	port, https, protocol, ready := int32(address.Port), "https", corev1.ProtocolTCP, true
	steps := []func() error{
		func() error { return ensure(ctx, by, "", forUsers, func(r *rbacv1.ClusterRole) { r.Rules = users }) },
		func() error {
			return ensure(ctx, by, "", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:metrics-server"}}, func(r *rbacv1.ClusterRole) { r.Rules = reader })
		},
		func() error {
			return ensure(ctx, by, "", &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "system:metrics-server"}}, func(b *rbacv1.ClusterRoleBinding) {
				b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:metrics-server"}
				b.Subjects = subjects
			})
		},
		func() error {
			return ensure(ctx, by, namespace, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-auth-reader"}}, func(b *rbacv1.RoleBinding) {
				b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"}
				b.Subjects = subjects
			})
		},
		func() error {
			return ensure(ctx, by, namespace, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(v *corev1.Service) {
				v.Spec.Ports = []corev1.ServicePort{{Name: https, Port: 443, Protocol: protocol, TargetPort: intstr.FromInt32(port)}}
			})
		},
		func() error {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: discoveryv1.AddressTypeIPv4}
			return ensure(ctx, by, namespace, slice, func(v *discoveryv1.EndpointSlice) {
				v.Ports = []discoveryv1.EndpointPort{{Name: &https, Port: &port, Protocol: &protocol}}
				v.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}
			})
		},
		func() error {
			return ensure(ctx, by, "", &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: apiServiceName}}, func(v *apiregistrationv1.APIService) {
				httpsPort := int32(443)
				v.Spec = apiregistrationv1.APIServiceSpec{
					Group: metricsv1beta1.GroupName, Version: "v1beta1", GroupPriorityMinimum: 100, VersionPriority: 100,
					Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: &httpsPort}, CABundle: caBundle,
				}
			})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates an object, or changes it where it is not as set makes it.
func ensure[T client.Object](ctx context.Context, by *client.Client, in string, obj T, set func(T)) error {
	api := client.For[T](by)
	if in != "" {
		api = api.Namespace(in)
	}
	_, _, err := api.CreateOrUpdate(ctx, obj, func(obj T) error {
		set(obj)
		return nil
	})
	return err
}

// remove takes the server out of the API.
func (s *Server) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	by, err := s.opts.Installer()
	if err == nil {
		defer by.CloseIdleConnections()
		err = client.For[*apiregistrationv1.APIService](by).Delete(ctx, apiServiceName, metav1.DeleteOptions{})
	}
	if err != nil {
		s.opts.Logger.Debug("the APIService of metrics remains", "error", err)
	}
}
