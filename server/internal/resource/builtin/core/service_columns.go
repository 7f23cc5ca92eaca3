package core

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

func serviceLayout() columns.Layout {
	spec := corev1.ServiceSpec{}.SwaggerDoc()
	return columns.Table(func(s *corev1.Service, now time.Time) []any {
		clusterIP := s.Spec.ClusterIP
		if len(s.Spec.ClusterIPs) > 0 {
			clusterIP = s.Spec.ClusterIPs[0]
		}
		return []any{
			s.Name, string(s.Spec.Type), columns.Or(clusterIP, columns.None), externalIP(s), columns.Or(servicePorts(s.Spec.Ports), columns.None),
			columns.Since(s.CreationTimestamp, now), labels.FormatLabels(s.Spec.Selector),
		}
	},
		columns.NameColumn,
		columns.Text("Type", spec["type"]),
		columns.Text("Cluster-IP", spec["clusterIP"]),
		columns.Text("External-IP", spec["externalIPs"]),
		columns.Text("Port(s)", spec["ports"]),
		columns.AgeColumn,
		columns.Wide(columns.Text("Selector", spec["selector"])),
	)
}

func externalIP(s *corev1.Service) string {
	own := strings.Join(s.Spec.ExternalIPs, ",")
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return columns.Or(own, columns.None)
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var given []string
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			given = append(given, columns.Or(ingress.IP, ingress.Hostname))
		}
		balanced := columns.SortedSet(given)
		if balanced != "" && own != "" {
			return balanced + "," + own
		}
		return columns.Or(balanced+own, "<pending>")
	}
	return columns.Unknown
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
