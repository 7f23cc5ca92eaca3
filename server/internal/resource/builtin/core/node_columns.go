package core

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// The two forms of a label that gives a node a role: the first with the role
// in the key, the second with the role as the value.
const (
	nodeRolePrefix = "node-role.kubernetes.io/"
	nodeRoleLabel  = "kubernetes.io/role"
)

func nodeLayout() columns.Layout {
	info, addresses := corev1.NodeSystemInfo{}.SwaggerDoc(), corev1.NodeStatus{}.SwaggerDoc()["addresses"]
	return columns.Table(func(n *corev1.Node, now time.Time) []any {
		info := &n.Status.NodeInfo
		return []any{
			n.Name, nodeStatus(n), columns.Or(nodeRoles(n.Labels), columns.None), columns.Since(n.CreationTimestamp, now), info.KubeletVersion,
			nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP),
			columns.Or(info.OSImage, columns.Unknown), kernel(info), columns.Or(info.ContainerRuntimeVersion, columns.Unknown),
		}
	},
		columns.NameColumn,
		columns.Text("Status", "The status of the node"),
		columns.Text("Roles", "The roles of the node"),
		columns.AgeColumn,
		columns.Text("Version", info["kubeletVersion"]),
		columns.Wide(columns.Text("Internal-IP", addresses)),
		columns.Wide(columns.Text("External-IP", addresses)),
		columns.Wide(columns.Text("OS-Image", info["osImage"])),
		columns.Wide(columns.Text("Kernel-Version", info["kernelVersion"])),
		columns.Wide(columns.Text("Container-Runtime", info["containerRuntimeVersion"])),
	)
}

func nodeStatus(n *corev1.Node) string {
	typeOf := func(c *corev1.NodeCondition) corev1.NodeConditionType { return c.Type }
	status := "Unknown"
	if ready := columns.Condition(n.Status.Conditions, typeOf, corev1.NodeReady); ready != nil {
		status = "NotReady"
		if ready.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(labels map[string]string) string {
	var roles []string
	for key, value := range labels {
		if role, ok := strings.CutPrefix(key, nodeRolePrefix); ok {
			roles = append(roles, role)
		} else if key == nodeRoleLabel {
			roles = append(roles, value)
		}
	}
	return columns.SortedSet(roles)
}

func nodeAddress(n *corev1.Node, want corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == want {
			return a.Address
		}
	}
	return columns.None
}

// kernel is the kernel of a node and the architecture that it is for.
func kernel(info *corev1.NodeSystemInfo) string {
	version := columns.Or(info.KernelVersion, columns.Unknown)
	if info.Architecture == "" {
		return version
	}
	return version + " (" + info.Architecture + ")"
}
