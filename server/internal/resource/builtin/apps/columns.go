package apps

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := appsv1.SchemeGroupVersion
	all.Add(gv, "ControllerRevision", controllerRevisionLayout())
	all.Add(gv, "DaemonSet", daemonSetLayout())
	all.Add(gv, "Deployment", deploymentLayout())
	all.Add(gv, "ReplicaSet", replicaSetLayout())
	all.Add(gv, "StatefulSet", statefulSetLayout())
}

func deploymentLayout() columns.Layout {
	spec, status := appsv1.DeploymentSpec{}.SwaggerDoc(), appsv1.DeploymentStatus{}.SwaggerDoc()
	return columns.Table(func(d *appsv1.Deployment, now time.Time) []any {
		names, images := columns.ContainerCells(d.Spec.Template.Spec.Containers)
		return []any{
			d.Name, columns.Fraction(d.Status.ReadyReplicas, columns.ValueOr(d.Spec.Replicas, 1)),
			int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas), columns.Since(d.CreationTimestamp, now),
			names, images, deploymentSelector(d),
		}
	},
		columns.NameColumn,
		columns.Text("Ready", "Number of the pod with ready state"),
		columns.Text("Up-to-date", status["updatedReplicas"]),
		columns.Text("Available", status["availableReplicas"]),
		columns.AgeColumn, columns.Wide(columns.ContainersColumn), columns.Wide(columns.ImagesColumn), columns.Wide(columns.Text("Selector", spec["selector"])),
	)
}

// deploymentSelector is empty for no selector, where the other kinds say so.
func deploymentSelector(d *appsv1.Deployment) string {
	s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return "<invalid>"
	}
	return s.String()
}

func replicaSetLayout() columns.Layout {
	spec, status := appsv1.ReplicaSetSpec{}.SwaggerDoc(), appsv1.ReplicaSetStatus{}.SwaggerDoc()
	return columns.Table(func(s *appsv1.ReplicaSet, now time.Time) []any {
		names, images := columns.ContainerCells(s.Spec.Template.Spec.Containers)
		return []any{
			s.Name, int64(columns.ValueOr(s.Spec.Replicas, 1)), int64(s.Status.Replicas), int64(s.Status.ReadyReplicas),
			columns.Since(s.CreationTimestamp, now), names, images, metav1.FormatLabelSelector(s.Spec.Selector),
		}
	},
		columns.NameColumn,
		columns.Integer("Desired", spec["replicas"]),
		columns.Integer("Current", status["replicas"]),
		columns.Integer("Ready", status["readyReplicas"]),
		columns.AgeColumn, columns.Wide(columns.ContainersColumn), columns.Wide(columns.ImagesColumn), columns.Wide(columns.Text("Selector", spec["selector"])),
	)
}

func statefulSetLayout() columns.Layout {
	return columns.Table(func(s *appsv1.StatefulSet, now time.Time) []any {
		names, images := columns.ContainerCells(s.Spec.Template.Spec.Containers)
		return []any{
			s.Name, columns.Fraction(s.Status.ReadyReplicas, columns.ValueOr(s.Spec.Replicas, 1)), columns.Since(s.CreationTimestamp, now),
			names, images,
		}
	},
		columns.NameColumn,
		columns.Text("Ready", "Number of the pod with ready state"),
		columns.AgeColumn, columns.Wide(columns.ContainersColumn), columns.Wide(columns.ImagesColumn),
	)
}

func daemonSetLayout() columns.Layout {
	status := appsv1.DaemonSetStatus{}.SwaggerDoc()
	return columns.Table(func(s *appsv1.DaemonSet, now time.Time) []any {
		names, images := columns.ContainerCells(s.Spec.Template.Spec.Containers)
		return []any{
			s.Name, int64(s.Status.DesiredNumberScheduled), int64(s.Status.CurrentNumberScheduled),
			int64(s.Status.NumberReady), int64(s.Status.UpdatedNumberScheduled), int64(s.Status.NumberAvailable),
			labels.FormatLabels(s.Spec.Template.Spec.NodeSelector), columns.Since(s.CreationTimestamp, now),
			names, images, metav1.FormatLabelSelector(s.Spec.Selector),
		}
	},
		columns.NameColumn,
		columns.Integer("Desired", status["desiredNumberScheduled"]),
		columns.Integer("Current", status["currentNumberScheduled"]),
		columns.Integer("Ready", status["numberReady"]),
		columns.Integer("Up-to-date", status["updatedNumberScheduled"]),
		columns.Integer("Available", status["numberAvailable"]),
		columns.Text("Node Selector", corev1.PodSpec{}.SwaggerDoc()["nodeSelector"]),
		columns.AgeColumn, columns.Wide(columns.ContainersColumn), columns.Wide(columns.ImagesColumn), columns.Wide(columns.Text("Selector", appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"])),
	)
}

func controllerRevisionLayout() columns.Layout {
	return columns.Table(func(r *appsv1.ControllerRevision, now time.Time) []any {
		return []any{r.Name, controllerName(r), r.Revision, columns.Since(r.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Controller", "Controller of the object"),
		columns.Text("Revision", appsv1.ControllerRevision{}.SwaggerDoc()["revision"]),
		columns.AgeColumn,
	)
}

func controllerName(obj metav1.Object) string {
	ref := metav1.GetControllerOf(obj)
	if ref == nil {
		return columns.None
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return strings.ToLower(kind.String()) + "/" + ref.Name
}
