package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// clusterEventNamespace is where events about cluster-scoped objects go.
const clusterEventNamespace = metav1.NamespaceDefault

func eventRules() define.Rules[*corev1.Event] {
	return define.Rules[*corev1.Event]{
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

// groupEventRules are those of events.k8s.io/v1, which asks for more.
func groupEventRules() define.Rules[*eventsv1.Event] {
	return define.Rules[*eventsv1.Event]{
		Validate: func(e *eventsv1.Event) field.ErrorList {
			errs := validateEventNamespace(field.NewPath("regarding", "namespace"), e.Namespace, e.Regarding.Namespace)
			if e.EventTime.IsZero() {
				errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
			}
			errs = append(errs, validate.Required(field.NewPath("reportingController"), e.ReportingController)...)
			errs = append(errs, validate.Required(field.NewPath("reportingInstance"), e.ReportingInstance)...)
			errs = append(errs, validate.Required(field.NewPath("action"), e.Action)...)
			errs = append(errs, validate.Required(field.NewPath("reason"), e.Reason)...)
			return append(errs, validate.OneOf(field.NewPath("type"), e.Type, corev1.EventTypeNormal, corev1.EventTypeWarning)...)
		},
	}
}

// groupEventFromCore shows a stored event in the newer shape.
func groupEventFromCore(e *corev1.Event) (*eventsv1.Event, error) {
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

// groupEventToCore is the reverse.
func groupEventToCore(e *eventsv1.Event) (*corev1.Event, error) {
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

// eventTTL is how long events are kept, Kubernetes' default.
const eventTTL = time.Hour

// events returns core/v1 events, which is what is stored, and events.k8s.io/v1
// over them.
func events() []*resource.Resource {
	entry := define.Kind{
		Name: "Event", Plural: "events", NameRule: path.ValidatePathSegmentName, ShortNames: []string{"ev"}, TTL: eventTTL, NoGeneration: true, UpsertOnUpdate: true,
		Fields: append(define.Fields("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "type"),
			resource.Field{Name: "reportingComponent", Paths: [][]string{{"reportingComponent"}}},
			resource.Field{Name: "source", Paths: [][]string{{"source", "component"}, {"reportingComponent"}}}),
	}
	stored := define.Resource[corev1.Event, corev1.EventList](corev1.SchemeGroupVersion, entry, eventRules())

	entry.NameRule, entry.NameRuleForNew = nil, true
	entry.Fields = []resource.Field{{Name: "reason"}, {Name: "type"}, {Name: "reportingController", Stored: "reportingComponent"}}
	for _, part := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		entry.Fields = append(entry.Fields, resource.Field{Name: "regarding." + part, Stored: "involvedObject." + part})
	}
	shown := define.Resource[eventsv1.Event, eventsv1.EventList](eventsv1.SchemeGroupVersion, entry, groupEventRules())
	define.View(shown, stored, groupEventFromCore, groupEventToCore)
	return []*resource.Resource{stored, shown}
}
