package columns

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func appsGroup(all layouts) {
	gv := appsv1.SchemeGroupVersion
	all.add(gv, "ControllerRevision", controllerRevisions())
	all.add(gv, "DaemonSet", daemonSets())
	all.add(gv, "Deployment", deployments())
	all.add(gv, "ReplicaSet", replicaSets())
	all.add(gv, "StatefulSet", statefulSets())
}

func deployments() layout {
	return table(func(d *appsv1.Deployment, now time.Time) []any {
		names, images := containerCells(d.Spec.Template.Spec.Containers)
		return []any{
			d.Name, fraction(d.Status.ReadyReplicas, value(d.Spec.Replicas, 1)),
			int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas), since(d.CreationTimestamp, now),
			names, images, deploymentSelector(d),
		}
	},
		nameColumn,
		text("Ready", "How many of the wanted pods are ready."),
		text("Up-to-date", "The number of pods made from the current template."),
		text("Available", "The number of pods that have been ready for long enough."),
		ageColumn, containersColumn, imagesColumn, selectorColumn,
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

func replicaSets() layout {
	return table(func(s *appsv1.ReplicaSet, now time.Time) []any {
		names, images := containerCells(s.Spec.Template.Spec.Containers)
		return []any{
			s.Name, int64(value(s.Spec.Replicas, 1)), int64(s.Status.Replicas), int64(s.Status.ReadyReplicas),
			since(s.CreationTimestamp, now), names, images, metav1.FormatLabelSelector(s.Spec.Selector),
		}
	},
		nameColumn,
		integer("Desired", "The number of pods wanted."),
		integer("Current", "The number of pods that exist."),
		integer("Ready", "The number of pods that are ready."),
		ageColumn, containersColumn, imagesColumn, selectorColumn,
	)
}

func statefulSets() layout {
	return table(func(s *appsv1.StatefulSet, now time.Time) []any {
		names, images := containerCells(s.Spec.Template.Spec.Containers)
		return []any{
			s.Name, fraction(s.Status.ReadyReplicas, value(s.Spec.Replicas, 1)), since(s.CreationTimestamp, now),
			names, images,
		}
	},
		nameColumn,
		text("Ready", "How many of the wanted pods are ready."),
		ageColumn, containersColumn, imagesColumn,
	)
}

func daemonSets() layout {
	return table(func(s *appsv1.DaemonSet, now time.Time) []any {
		names, images := containerCells(s.Spec.Template.Spec.Containers)
		return []any{
			s.Name, int64(s.Status.DesiredNumberScheduled), int64(s.Status.CurrentNumberScheduled),
			int64(s.Status.NumberReady), int64(s.Status.UpdatedNumberScheduled), int64(s.Status.NumberAvailable),
			labels.FormatLabels(s.Spec.Template.Spec.NodeSelector), since(s.CreationTimestamp, now),
			names, images, metav1.FormatLabelSelector(s.Spec.Selector),
		}
	},
		nameColumn,
		integer("Desired", "The number of nodes that should run the pod."),
		integer("Current", "The number of those nodes that run it."),
		integer("Ready", "The number of those nodes where it is ready."),
		integer("Up-to-date", "The number of those nodes that run the current template."),
		integer("Available", "The number of those nodes where it has been ready for long enough."),
		text("Node Selector", "The labels of the nodes that should run the pod."),
		ageColumn, containersColumn, imagesColumn, selectorColumn,
	)
}

func controllerRevisions() layout {
	return table(func(r *appsv1.ControllerRevision, now time.Time) []any {
		return []any{r.Name, controllerName(r), r.Revision, since(r.CreationTimestamp, now)}
	},
		nameColumn,
		text("Controller", "The object whose template the revision keeps."),
		text("Revision", "The revision's number."),
		ageColumn,
	)
}

func controllerName(obj metav1.Object) string {
	ref := metav1.GetControllerOf(obj)
	if ref == nil {
		return none
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return strings.ToLower(kind.String()) + "/" + ref.Name
}
