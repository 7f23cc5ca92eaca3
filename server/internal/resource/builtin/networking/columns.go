package networking

import (
	"fmt"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := networkingv1.SchemeGroupVersion
	all.Add(gv, "IPAddress", ipAddressLayout())
	all.Add(gv, "Ingress", ingressLayout())
	all.Add(gv, "IngressClass", ingressClassLayout())
	all.Add(gv, "NetworkPolicy", networkPolicyLayout())
	all.Add(gv, "ServiceCIDR", serviceCIDRLayout())
}

func ingressLayout() columns.Layout {
	return columns.Table(func(i *networkingv1.Ingress, now time.Time) []any {
		var addresses []string
		for _, a := range i.Status.LoadBalancer.Ingress {
			addresses = append(addresses, columns.Or(a.IP, a.Hostname))
		}
		ports := "80"
		if len(i.Spec.TLS) > 0 {
			ports = "80, 443"
		}
		return []any{
			i.Name, columns.ValueOr(i.Spec.IngressClassName, columns.None), ingressHosts(i.Spec.Rules), columns.SortedSet(addresses), ports,
			columns.Since(i.CreationTimestamp, now),
		}
	},
		columns.NameColumn,
		columns.Text("Class", "The name of the IngressClass resource that should be used for additional configuration"),
		columns.Text("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
		columns.Text("Address", "Address is a list containing ingress points for the load-balancer"),
		columns.Text("Ports", "Ports of TLS configurations that open"),
		columns.AgeColumn,
	)
}

// ingressHosts counts rules without a host only if there are rules behind the
// third host, as Kubernetes does.
func ingressHosts(rules []networkingv1.IngressRule) string {
	const limit = 3
	var hosts []string
	for _, rule := range rules {
		if len(hosts) == limit {
			return fmt.Sprintf("%s + %d more...", strings.Join(hosts, ","), len(rules)-limit)
		}
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	return columns.Or(strings.Join(hosts, ","), "*")
}

func ingressClassLayout() columns.Layout {
	return columns.Table(func(c *networkingv1.IngressClass, now time.Time) []any {
		parameters := columns.None
		if p := c.Spec.Parameters; p != nil {
			kind := p.Kind
			if p.APIGroup != nil {
				kind += "." + *p.APIGroup
			}
			parameters = kind + "/" + p.Name
		}
		return []any{c.Name, c.Spec.Controller, parameters, columns.Since(c.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Controller", "Controller that is responsible for handling this class"),
		columns.Text("Parameters", "A reference to a resource with additional parameters"),
		columns.AgeColumn,
	)
}

func networkPolicyLayout() columns.Layout {
	return columns.Table(func(p *networkingv1.NetworkPolicy, now time.Time) []any {
		return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), columns.Since(p.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("Pod-Selector", networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"]), columns.AgeColumn)
}

func serviceCIDRLayout() columns.Layout {
	return columns.Table(func(c *networkingv1.ServiceCIDR, now time.Time) []any {
		return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), columns.Since(c.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("CIDRs", networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"]), columns.AgeColumn)
}

func ipAddressLayout() columns.Layout {
	return columns.Table(func(a *networkingv1.IPAddress, _ time.Time) []any {
		parent := columns.None
		if ref := a.Spec.ParentRef; ref != nil {
			resource := schema.GroupResource{Group: ref.Group, Resource: ref.Resource}
			parent = strings.ToLower(resource.String())
			if ref.Namespace != "" {
				parent += "/" + ref.Namespace
			}
			parent += "/" + ref.Name
		}
		return []any{a.Name, parent}
	}, columns.NameColumn, columns.Text("ParentRef", networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"]))
}
