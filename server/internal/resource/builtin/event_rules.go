package builtin

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// clusterEventNamespace is where events about cluster-scoped objects go.
const clusterEventNamespace = metav1.NamespaceDefault

func eventRules() rules[*corev1.Event] {
	return rules[*corev1.Event]{
		Validate: func(e *corev1.Event) field.ErrorList {
			return validateEventNamespace(field.NewPath("involvedObject", "namespace"), e.Namespace, e.InvolvedObject.Namespace)
		},
	}
}

// validateEventNamespace: an event lives with the object it is about, or in
// one of two namespaces if that has none.
func validateEventNamespace(path *field.Path, namespace, object string) field.ErrorList {
	ok := namespace == object
	if object == "" {
		ok = namespace == clusterEventNamespace || namespace == metav1.NamespaceSystem
	}
	if !ok {
		return field.ErrorList{field.Invalid(path, object, "does not match event.namespace")}
	}
	return nil
}

// newEventRules are those of events.k8s.io/v1, which asks for more.
func newEventRules() rules[*eventsv1.Event] {
	return rules[*eventsv1.Event]{
		Validate: func(e *eventsv1.Event) field.ErrorList {
			errs := validateEventNamespace(field.NewPath("regarding", "namespace"), e.Namespace, e.Regarding.Namespace)
			if e.EventTime.IsZero() {
				errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
			}
			errs = append(errs, required(field.NewPath("reportingController"), e.ReportingController)...)
			errs = append(errs, required(field.NewPath("reportingInstance"), e.ReportingInstance)...)
			errs = append(errs, required(field.NewPath("action"), e.Action)...)
			errs = append(errs, required(field.NewPath("reason"), e.Reason)...)
			return append(errs, oneOf(field.NewPath("type"), e.Type, corev1.EventTypeNormal, corev1.EventTypeWarning)...)
		},
	}
}

// newEventFromCore shows a stored event in the newer shape.
func newEventFromCore(e *corev1.Event) (*eventsv1.Event, error) {
	e = e.DeepCopy()
	shown := &eventsv1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, Type: e.Type, Note: e.Message,
		Regarding: e.InvolvedObject, Related: e.Related,
		DeprecatedSource: e.Source, DeprecatedCount: e.Count,
		DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp,
	}
	if e.Series != nil {
		shown.Series = &eventsv1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return shown, nil
}

// newEventToCore is the reverse.
func newEventToCore(e *eventsv1.Event) (*corev1.Event, error) {
	e = e.DeepCopy()
	stored := &corev1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, Type: e.Type, Message: e.Note,
		InvolvedObject: e.Regarding, Related: e.Related,
		Source: e.DeprecatedSource, Count: e.DeprecatedCount,
		FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp,
	}
	if e.Series != nil {
		stored.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return stored, nil
}
