package core

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func eventRules() define.Rules[*corev1.Event] {
	return define.Rules[*corev1.Event]{
		Validate: func(e *corev1.Event) field.ErrorList { return validateEvent(e, "reportingComponent") },
	}
}

// validateEvent checks an event: it lives with the object that it is about, and what has a time of
// its own was made by a client that knows the newer fields. The errors name the fields of core
// events, whatever the version; controller is how the version calls the reporting controller.
func validateEvent(e *corev1.Event, controller string) field.ErrorList {
	const most, mostOfNote = 128, 1024
	var errs field.ErrorList
	namespace, object := field.NewPath("involvedObject", "namespace"), e.InvolvedObject.Namespace
	if e.EventTime.IsZero() {
		if object != e.Namespace && (object != "" || e.Namespace != metav1.NamespaceDefault) {
			errs = append(errs, field.Invalid(namespace, object, "does not match event.namespace"))
		}
		return errs
	}
	if object == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem {
		errs = append(errs, field.Invalid(namespace, object, "does not match event.namespace"))
	}
	short := func(name, value string, most int) {
		if len(value) > most {
			errs = append(errs, field.Invalid(field.NewPath(name), "", fmt.Sprintf("can have at most %d characters", most)))
		}
	}
	require := func(name, value string) {
		errs = append(errs, validate.Required(field.NewPath(name), value)...)
	}
	require(controller, e.ReportingController)
	errs = append(errs, validate.Invalid(field.NewPath(controller), e.ReportingController, validation.IsQualifiedName(e.ReportingController))...)
	require("reportingInstance", e.ReportingInstance)
	short("reportingInstance", e.ReportingInstance, most)
	require("action", e.Action)
	short("action", e.Action, most)
	require("reason", e.Reason)
	short("reason", e.Reason, most)
	short("message", e.Message, mostOfNote)
	return errs
}

// groupEventRules are those of events.k8s.io/v1, which asks for more. What it asks for after the
// rules of core events begins with the metadata.
func groupEventRules() define.Rules[*eventsv1.Event] {
	asCore := func(e *eventsv1.Event) field.ErrorList { return validateEvent(coreEvent(e), "reportingController") }
	return define.Rules[*eventsv1.Event]{
		ValidateFirst: asCore,
		ValidateCreate: func(e *eventsv1.Event) field.ErrorList {
			errs := validateSeries(e)
			if e.EventTime.IsZero() {
				errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
			}
			if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
				errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+e.Type))
			}
			unset := func(name string, set bool) {
				if set {
					errs = append(errs, field.Invalid(field.NewPath(name), "", "needs to be unset"))
				}
			}
			unset("firstTimestamp", !e.DeprecatedFirstTimestamp.IsZero())
			unset("lastTimestamp", !e.DeprecatedLastTimestamp.IsZero())
			unset("count", e.DeprecatedCount != 0)
			unset("source", e.DeprecatedSource != corev1.EventSource{})
			return errs
		},
		ValidateUnchanged: func(e, _ *eventsv1.Event) field.ErrorList { return asCore(e) },
		ValidateUpdate:    validateGroupEventUpdate,
	}
}

func validateSeries(e *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	if e.Series != nil && e.Series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if e.Series != nil && e.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateGroupEventUpdate: only the series of an event goes on.
func validateGroupEventUpdate(e, old *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(e.Series, old.Series) {
		errs = validateSeries(e)
	}
	keep := func(name string, now, before any) {
		errs = append(errs, validate.Unchanged(field.NewPath(name), now, before)...)
	}
	keep("involvedObject", e.Regarding, old.Regarding)
	keep("reason", e.Reason, old.Reason)
	keep("message", e.Note, old.Note)
	keep("source", e.DeprecatedSource, old.DeprecatedSource)
	keep("firstTimestamp", e.DeprecatedFirstTimestamp, old.DeprecatedFirstTimestamp)
	keep("lastTimestamp", e.DeprecatedLastTimestamp, old.DeprecatedLastTimestamp)
	keep("count", e.DeprecatedCount, old.DeprecatedCount)
	keep("reason", e.Reason, old.Reason)
	keep("type", e.Type, old.Type)
	if !e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		keep("eventTime", e.EventTime, old.EventTime)
	}
	keep("action", e.Action, old.Action)
	keep("related", e.Related, old.Related)
	keep("reportingController", e.ReportingController, old.ReportingController)
	keep("reportingInstance", e.ReportingInstance, old.ReportingInstance)
	return errs
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
func groupEventToCore(e *eventsv1.Event) (*corev1.Event, error) { return coreEvent(e.DeepCopy()), nil }

// coreEvent is the event as it is stored. It shares memory with e.
func coreEvent(e *eventsv1.Event) *corev1.Event {
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
	return stored
}

// eventTTL is how long events are kept, Kubernetes' default.
const eventTTL = time.Hour

// events returns core/v1 events, which is what is stored, and events.k8s.io/v1
// over them.
func events() []*resource.Resource {
	entry := define.Kind{
		Name: "Event", Plural: "events", NameRule: path.ValidatePathSegmentName, MetadataIfValid: true, ShortNames: []string{"ev"}, TTL: eventTTL, NoGeneration: true, UpsertOnUpdate: true, NoDependents: true,
		Fields: append(define.Fields("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "type"),
			resource.Field{Name: "reportingComponent", Paths: [][]string{{"reportingComponent"}}},
			resource.Field{Name: "source", Paths: [][]string{{"source", "component"}, {"reportingComponent"}}}),
	}
	stored := define.Resource[corev1.Event, corev1.EventList](corev1.SchemeGroupVersion, entry, eventRules())

	entry.NameRule, entry.NameRuleForNew, entry.MetadataIfValid = nil, true, false
	entry.NamesBeforeFinalizers = true // and the rules of core events: see ValidateUnchanged
	entry.Fields = []resource.Field{{Name: "reason"}, {Name: "type"}, {Name: "reportingController", Stored: "reportingComponent"}}
	for _, part := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		entry.Fields = append(entry.Fields, resource.Field{Name: "regarding." + part, Stored: "involvedObject." + part})
	}
	shown := define.Resource[eventsv1.Event, eventsv1.EventList](eventsv1.SchemeGroupVersion, entry, groupEventRules())
	define.View(shown, stored, groupEventFromCore, groupEventToCore)
	return []*resource.Resource{stored, shown}
}
