package columns

import (
	"fmt"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func networkingGroup(all layouts) {
	gv := networkingv1.SchemeGroupVersion
	all.add(gv, "IPAddress", ipAddresses())
	all.add(gv, "Ingress", ingresses())
	all.add(gv, "IngressClass", ingressClasses())
	all.add(gv, "NetworkPolicy", networkPolicies())
	all.add(gv, "ServiceCIDR", serviceCIDRs())
}

func ingresses() layout {
	return table(func(i *networkingv1.Ingress, now time.Time) []any {
		var addresses []string
		for _, a := range i.Status.LoadBalancer.Ingress {
			addresses = append(addresses, or(a.IP, a.Hostname))
		}
		ports := "80"
		if len(i.Spec.TLS) > 0 {
			ports = "80, 443"
		}
		return []any{
			i.Name, value(i.Spec.IngressClassName, none), ingressHosts(i.Spec.Rules), sortedSet(addresses), ports,
			since(i.CreationTimestamp, now),
		}
	},
		nameColumn,
		text("Class", "The ingress class, which says who serves the ingress."),
		text("Hosts", "The hosts whose requests the ingress takes."),
		text("Address", "The load balancer's addresses."),
		text("Ports", "The ports that the load balancer listens on."),
		ageColumn,
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
	return or(strings.Join(hosts, ","), "*")
}

func ingressClasses() layout {
	return table(func(c *networkingv1.IngressClass, now time.Time) []any {
		parameters := none
		if p := c.Spec.Parameters; p != nil {
			kind := p.Kind
			if p.APIGroup != nil {
				kind += "." + *p.APIGroup
			}
			parameters = kind + "/" + p.Name
		}
		return []any{c.Name, c.Spec.Controller, parameters, since(c.CreationTimestamp, now)}
	},
		nameColumn,
		text("Controller", "The controller that serves ingresses of the class."),
		text("Parameters", "The object with the controller's parameters."),
		ageColumn,
	)
}

func networkPolicies() layout {
	return table(func(p *networkingv1.NetworkPolicy, now time.Time) []any {
		return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), since(p.CreationTimestamp, now)}
	}, nameColumn, text("Pod-Selector", "The labels of the pods that the policy is for."), ageColumn)
}

func serviceCIDRs() layout {
	return table(func(c *networkingv1.ServiceCIDR, now time.Time) []any {
		return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), since(c.CreationTimestamp, now)}
	}, nameColumn, text("CIDRs", "The ranges that services' addresses are taken from."), ageColumn)
}

func ipAddresses() layout {
	return table(func(a *networkingv1.IPAddress, _ time.Time) []any {
		parent := none
		if ref := a.Spec.ParentRef; ref != nil {
			resource := schema.GroupResource{Group: ref.Group, Resource: ref.Resource}
			parent = strings.ToLower(resource.String())
			if ref.Namespace != "" {
				parent += "/" + ref.Namespace
			}
			parent += "/" + ref.Name
		}
		return []any{a.Name, parent}
	}, nameColumn, text("ParentRef", "The object that the address belongs to."))
}
