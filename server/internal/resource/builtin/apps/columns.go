package apps

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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
	return columns.Table(func(d *appsv1.Deployment, now time.Time) []any {
		names, images := columns.ContainerCells(d.Spec.Template.Spec.Containers)
		return []any{
			d.Name, columns.Fraction(d.Status.ReadyReplicas, columns.ValueOr(d.Spec.Replicas, 1)),
			int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas), columns.Since(d.CreationTimestamp, now),
			names, images, deploymentSelector(d),
		}
	},
		columns.NameColumn,
		columns.Text("Ready", "How many of the wanted pods are ready."),
		columns.Text("Up-to-date", "The number of pods made from the current template."),
		columns.Text("Available", "The number of pods that have been ready for long enough."),
		columns.AgeColumn, columns.ContainersColumn, columns.ImagesColumn, columns.SelectorColumn,
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
	return columns.Table(func(s *appsv1.ReplicaSet, now time.Time) []any {
		names, images := columns.ContainerCells(s.Spec.Template.Spec.Containers)
		return []any{
			s.Name, int64(columns.ValueOr(s.Spec.Replicas, 1)), int64(s.Status.Replicas), int64(s.Status.ReadyReplicas),
			columns.Since(s.CreationTimestamp, now), names, images, metav1.FormatLabelSelector(s.Spec.Selector),
		}
	},
		columns.NameColumn,
		columns.Integer("Desired", "The number of pods wanted."),
		columns.Integer("Current", "The number of pods that exist."),
		columns.Integer("Ready", "The number of pods that are ready."),
		columns.AgeColumn, columns.ContainersColumn, columns.ImagesColumn, columns.SelectorColumn,
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
		columns.Text("Ready", "How many of the wanted pods are ready."),
		columns.AgeColumn, columns.ContainersColumn, columns.ImagesColumn,
	)
}

func daemonSetLayout() columns.Layout {
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
		columns.Integer("Desired", "The number of nodes that should run the pod."),
		columns.Integer("Current", "The number of those nodes that run it."),
		columns.Integer("Ready", "The number of those nodes where it is ready."),
		columns.Integer("Up-to-date", "The number of those nodes that run the current template."),
		columns.Integer("Available", "The number of those nodes where it has been ready for long enough."),
		columns.Text("Node Selector", "The labels of the nodes that should run the pod."),
		columns.AgeColumn, columns.ContainersColumn, columns.ImagesColumn, columns.SelectorColumn,
	)
}

func controllerRevisionLayout() columns.Layout {
	return columns.Table(func(r *appsv1.ControllerRevision, now time.Time) []any {
		return []any{r.Name, controllerName(r), r.Revision, columns.Since(r.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Controller", "The object whose template the revision keeps."),
		columns.Text("Revision", "The revision's number."),
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
