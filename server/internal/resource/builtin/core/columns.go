package core

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(eventsv1.SchemeGroupVersion, "Event", groupEventLayout())
	gv := corev1.SchemeGroupVersion
	all.Add(gv, "ComponentStatus", componentStatusLayout())
	all.Add(gv, "ConfigMap", configMapLayout())
	all.Add(gv, "Endpoints", endpointsLayout())
	all.Add(gv, "Event", coreEventLayout())
	all.Add(gv, "LimitRange", columns.NameAndCreation())
	all.Add(gv, "Namespace", namespaceLayout())
	all.Add(gv, "Node", nodeLayout())
	all.Add(gv, "PersistentVolume", persistentVolumeLayout())
	all.Add(gv, "PersistentVolumeClaim", persistentVolumeClaimLayout())
	all.Add(gv, "Pod", podLayout())
	all.Add(gv, "PodTemplate", podTemplateLayout())
	all.Add(gv, "ReplicationController", replicationControllerLayout())
	all.Add(gv, "ResourceQuota", resourceQuotaLayout())
	all.Add(gv, "Secret", secretLayout())
	all.Add(gv, "Service", serviceLayout())
	all.Add(gv, "ServiceAccount", columns.NameAndAge())
}

func componentStatusLayout() columns.Layout {
	return columns.Table(func(s *corev1.ComponentStatus, _ time.Time) []any {
		typeOf := func(c *corev1.ComponentCondition) corev1.ComponentConditionType { return c.Type }
		healthy := columns.Condition(s.Conditions, typeOf, corev1.ComponentHealthy)
		switch {
		case healthy == nil:
			return []any{s.Name, "Unknown", "", ""}
		case healthy.Status == corev1.ConditionTrue:
			return []any{s.Name, "Healthy", healthy.Message, healthy.Error}
		}
		return []any{s.Name, "Unhealthy", healthy.Message, healthy.Error}
	},
		columns.NameColumn,
		columns.Text("Status", "Status of the component conditions"),
		columns.Text("Message", "Message of the component conditions"),
		columns.Text("Error", "Error of the component conditions"),
	)
}

func configMapLayout() columns.Layout {
	return columns.Table(func(m *corev1.ConfigMap, now time.Time) []any {
		return []any{m.Name, int64(len(m.Data) + len(m.BinaryData)), columns.Since(m.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("Data", corev1.ConfigMap{}.SwaggerDoc()["data"]), columns.AgeColumn)
}

func secretLayout() columns.Layout {
	return columns.Table(func(s *corev1.Secret, now time.Time) []any {
		return []any{s.Name, string(s.Type), int64(len(s.Data)), columns.Since(s.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Type", corev1.Secret{}.SwaggerDoc()["type"]),
		columns.Text("Data", corev1.Secret{}.SwaggerDoc()["data"]),
		columns.AgeColumn,
	)
}

func namespaceLayout() columns.Layout {
	return columns.Table(func(n *corev1.Namespace, now time.Time) []any {
		return []any{n.Name, string(n.Status.Phase), columns.Since(n.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("Status", "The status of the namespace"), columns.AgeColumn)
}

func podTemplateLayout() columns.Layout {
	return columns.Table(func(t *corev1.PodTemplate, _ time.Time) []any {
		names, images := columns.ContainerCells(t.Template.Spec.Containers)
		return []any{t.Name, names, images, labels.FormatLabels(t.Template.Labels)}
	},
		columns.NameColumn, columns.ContainersColumn, columns.ImagesColumn,
		columns.Text("Pod Labels", "The labels for the pod template."),
	)
}

func replicationControllerLayout() columns.Layout {
	spec, status := corev1.ReplicationControllerSpec{}.SwaggerDoc(), corev1.ReplicationControllerStatus{}.SwaggerDoc()
	return columns.Table(func(c *corev1.ReplicationController, now time.Time) []any {
		var list []corev1.Container
		if c.Spec.Template != nil {
			list = c.Spec.Template.Spec.Containers
		}
		names, images := columns.ContainerCells(list)
		return []any{
			c.Name, int64(columns.ValueOr(c.Spec.Replicas, 1)), int64(c.Status.Replicas), int64(c.Status.ReadyReplicas),
			columns.Since(c.CreationTimestamp, now), names, images, labels.FormatLabels(c.Spec.Selector),
		}
	},
		columns.NameColumn,
		columns.Integer("Desired", spec["replicas"]),
		columns.Integer("Current", status["replicas"]),
		columns.Integer("Ready", status["readyReplicas"]),
		columns.AgeColumn, columns.Wide(columns.ContainersColumn), columns.Wide(columns.ImagesColumn), columns.Wide(columns.Text("Selector", spec["selector"])),
	)
}

func resourceQuotaLayout() columns.Layout {
	return columns.Table(func(q *corev1.ResourceQuota, now time.Time) []any {
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
		return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), columns.Since(q.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
		columns.Text("Limit", "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."),
		columns.AgeColumn,
	)
}

func endpointsLayout() columns.Layout {
	return columns.Table(func(e *corev1.Endpoints, now time.Time) []any {
		return []any{e.Name, endpointAddresses(e.Subsets), columns.Since(e.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("Endpoints", corev1.Endpoints{}.SwaggerDoc()["subsets"]), columns.AgeColumn)
}

func endpointAddresses(subsets []corev1.EndpointSubset) string {
	if len(subsets) == 0 {
		return columns.None
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
	return columns.AtMost(3, ",", list)
}
