package columns

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func coreGroup(all layouts) {
	gv := corev1.SchemeGroupVersion
	all.add(gv, "ComponentStatus", componentStatuses())
	all.add(gv, "ConfigMap", configMaps())
	all.add(gv, "Endpoints", endpoints())
	all.add(gv, "Event", coreEvents())
	all.add(gv, "LimitRange", nameAndCreation())
	all.add(gv, "Namespace", namespaces())
	all.add(gv, "Node", nodes())
	all.add(gv, "PersistentVolume", persistentVolumes())
	all.add(gv, "PersistentVolumeClaim", persistentVolumeClaims())
	all.add(gv, "Pod", pods())
	all.add(gv, "PodTemplate", podTemplates())
	all.add(gv, "ReplicationController", replicationControllers())
	all.add(gv, "ResourceQuota", resourceQuotas())
	all.add(gv, "Secret", secrets())
	all.add(gv, "Service", services())
	all.add(gv, "ServiceAccount", serviceAccounts())
}

func componentStatuses() layout {
	return table(func(s *corev1.ComponentStatus, _ time.Time) []any {
		typeOf := func(c *corev1.ComponentCondition) corev1.ComponentConditionType { return c.Type }
		healthy := condition(s.Conditions, typeOf, corev1.ComponentHealthy)
		switch {
		case healthy == nil:
			return []any{s.Name, "Unknown", "", ""}
		case healthy.Status == corev1.ConditionTrue:
			return []any{s.Name, "Healthy", healthy.Message, healthy.Error}
		}
		return []any{s.Name, "Unhealthy", healthy.Message, healthy.Error}
	},
		nameColumn,
		text("Status", "Whether the component is healthy."),
		text("Message", "What the component says about its health."),
		text("Error", "Why the component's health could not be read."),
	)
}

func configMaps() layout {
	return table(func(m *corev1.ConfigMap, now time.Time) []any {
		return []any{m.Name, int64(len(m.Data) + len(m.BinaryData)), since(m.CreationTimestamp, now)}
	}, nameColumn, text("Data", "The number of keys."), ageColumn)
}

func secrets() layout {
	return table(func(s *corev1.Secret, now time.Time) []any {
		return []any{s.Name, string(s.Type), int64(len(s.Data)), since(s.CreationTimestamp, now)}
	},
		nameColumn,
		text("Type", "What the secret is for."),
		text("Data", "The number of keys."),
		ageColumn,
	)
}

func serviceAccounts() layout {
	return table(func(a *corev1.ServiceAccount, now time.Time) []any {
		return []any{a.Name, int64(len(a.Secrets)), since(a.CreationTimestamp, now)}
	}, nameColumn, text("Secrets", "The number of secrets that pods of this account may use."), ageColumn)
}

func namespaces() layout {
	return table(func(n *corev1.Namespace, now time.Time) []any {
		return []any{n.Name, string(n.Status.Phase), since(n.CreationTimestamp, now)}
	}, nameColumn, text("Status", "Whether the namespace is in use or going."), ageColumn)
}

func podTemplates() layout {
	return table(func(t *corev1.PodTemplate, _ time.Time) []any {
		names, images := containerCells(t.Template.Spec.Containers)
		return []any{t.Name, names, images, labels.FormatLabels(t.Template.Labels)}
	},
		nameColumn,
		text("Containers", "The names of the template's containers."),
		text("Images", "The images of the template's containers."),
		text("Pod Labels", "The labels that pods made from the template get."),
	)
}

func replicationControllers() layout {
	return table(func(c *corev1.ReplicationController, now time.Time) []any {
		var list []corev1.Container
		if c.Spec.Template != nil {
			list = c.Spec.Template.Spec.Containers
		}
		names, images := containerCells(list)
		return []any{
			c.Name, int64(value(c.Spec.Replicas, 1)), int64(c.Status.Replicas), int64(c.Status.ReadyReplicas),
			since(c.CreationTimestamp, now), names, images, labels.FormatLabels(c.Spec.Selector),
		}
	},
		nameColumn,
		integer("Desired", "The number of pods wanted."),
		integer("Current", "The number of pods that exist."),
		integer("Ready", "The number of pods that are ready."),
		ageColumn, containersColumn, imagesColumn, selectorColumn,
	)
}

func resourceQuotas() layout {
	return table(func(q *corev1.ResourceQuota, now time.Time) []any {
		var requests, limits []string
		for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
			used, hard := q.Status.Used[name], q.Status.Hard[name]
			cell := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
			if strings.HasPrefix(string(name), "limits.") {
				limits = append(limits, cell)
			} else {
				requests = append(requests, cell)
			}
		}
		return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), since(q.CreationTimestamp, now)}
	},
		nameColumn,
		text("Request", "What is used and what may be used, of requests and of numbers of objects."),
		text("Limit", "What is used and what may be used, of limits."),
		ageColumn,
	)
}

func endpoints() layout {
	return table(func(e *corev1.Endpoints, now time.Time) []any {
		return []any{e.Name, endpointAddresses(e.Subsets), since(e.CreationTimestamp, now)}
	}, nameColumn, text("Endpoints", "The addresses and ports that are ready."), ageColumn)
}

func endpointAddresses(subsets []corev1.EndpointSubset) string {
	if len(subsets) == 0 {
		return none
	}
	var list []string
	for _, s := range subsets {
		for _, port := range s.Ports {
			for _, address := range s.Addresses {
				list = append(list, net.JoinHostPort(address.IP, strconv.Itoa(int(port.Port))))
			}
		}
		if len(s.Ports) == 0 { // a headless service may have none
			for _, address := range s.Addresses {
				list = append(list, address.IP)
			}
		}
	}
	return atMost(3, ",", list)
}
