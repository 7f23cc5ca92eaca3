package replicaset

import (
	"log/slog"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// owners is what the controller has to know of the kind of its owners.
type owners[T client.Object] struct {
	name     string // of the controller
	kind     schema.GroupVersionKind
	selector func(T) *metav1.LabelSelector
	// set returns an owner as a ReplicaSet, which shares what the owner has. Neither may be changed.
	set func(T) *appsv1.ReplicaSet
	// setStatus gives an owner the status of a ReplicaSet.
	setStatus func(T, appsv1.ReplicaSetStatus)
}

// New registers the controller of ReplicaSets with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller[*appsv1.ReplicaSet], error) {
	return newController(owners[*appsv1.ReplicaSet]{
		name: "replicaset", kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		selector:  func(set *appsv1.ReplicaSet) *metav1.LabelSelector { return set.Spec.Selector },
		set:       func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { return set },
		setStatus: func(set *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus) { set.Status = status },
	}, cl, factory, source, recorder, log)
}

// NewReplicationControllers registers the controller of ReplicationControllers with the factory's informers.
func NewReplicationControllers(cl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller[*corev1.ReplicationController], error) {
	return newController(owners[*corev1.ReplicationController]{
		name: "replicationcontroller", kind: corev1.SchemeGroupVersion.WithKind("ReplicationController"),
		selector: selectorOf,
		set:      setOf,
		setStatus: func(rc *corev1.ReplicationController, status appsv1.ReplicaSetStatus) {
			rc.Status = controllerStatusOf(&status)
		},
	}, cl, factory, source, recorder, log)
}

// selectorOf returns an empty selector, by which nothing is owned, for a ReplicationController without a template.
func selectorOf(rc *corev1.ReplicationController) *metav1.LabelSelector {
	if rc.Spec.Template == nil {
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}
}

func setOf(rc *corev1.ReplicationController) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: rc.ObjectMeta,
		Spec:       appsv1.ReplicaSetSpec{Replicas: rc.Spec.Replicas, MinReadySeconds: rc.Spec.MinReadySeconds, Selector: selectorOf(rc)},
		Status: appsv1.ReplicaSetStatus{
			Replicas: rc.Status.Replicas, FullyLabeledReplicas: rc.Status.FullyLabeledReplicas, ReadyReplicas: rc.Status.ReadyReplicas,
			AvailableReplicas: rc.Status.AvailableReplicas, ObservedGeneration: rc.Status.ObservedGeneration,
		},
	}
	if rc.Spec.Template != nil {
		set.Spec.Template = *rc.Spec.Template
	}
	for _, c := range rc.Status.Conditions {
		set.Status.Conditions = append(set.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return set
}

func controllerStatusOf(status *appsv1.ReplicaSetStatus) corev1.ReplicationControllerStatus {
	of := corev1.ReplicationControllerStatus{
		Replicas: status.Replicas, FullyLabeledReplicas: status.FullyLabeledReplicas, ReadyReplicas: status.ReadyReplicas,
		AvailableReplicas: status.AvailableReplicas, ObservedGeneration: status.ObservedGeneration,
	}
	for _, c := range status.Conditions {
		of.Conditions = append(of.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return of
}
