package columns

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func services() layout {
	return table(func(s *corev1.Service, now time.Time) []any {
		clusterIP := s.Spec.ClusterIP
		if len(s.Spec.ClusterIPs) > 0 {
			clusterIP = s.Spec.ClusterIPs[0]
		}
		return []any{
			s.Name, string(s.Spec.Type), or(clusterIP, none), externalIP(s), or(servicePorts(s.Spec.Ports), none),
			since(s.CreationTimestamp, now), labels.FormatLabels(s.Spec.Selector),
		}
	},
		nameColumn,
		text("Type", "How the service is reached."),
		text("Cluster-IP", "The service's primary address within the cluster."),
		text("External-IP", "The addresses or the name outside the cluster."),
		text("Port(s)", "The ports that the service listens on, with the nodes' ports."),
		ageColumn,
		selectorColumn,
	)
}

func externalIP(s *corev1.Service) string {
	own := strings.Join(s.Spec.ExternalIPs, ",")
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return or(own, none)
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var given []string
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			given = append(given, or(ingress.IP, ingress.Hostname))
		}
		balanced := sortedSet(given)
		if balanced != "" && own != "" {
			return balanced + "," + own
		}
		return or(balanced+own, "<pending>")
	}
	return unknown
}

func servicePorts(ports []corev1.ServicePort) string {
	list := make([]string, len(ports))
	for i, p := range ports {
		if p.NodePort > 0 {
			list[i] = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		} else {
			list[i] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		}
	}
	return strings.Join(list, ",")
}
