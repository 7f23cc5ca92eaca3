package core

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

var (
	eventFields  = corev1.Event{}.SwaggerDoc()
	eventColumns = []metav1.TableColumnDefinition{
		columns.Text("Last Seen", eventFields["lastTimestamp"]),
		columns.Text("Type", eventFields["type"]),
		columns.Text("Reason", eventFields["reason"]),
		columns.Text("Object", eventFields["involvedObject"]),
		columns.Wide(columns.Text("Subobject", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"])),
		columns.Wide(columns.Text("Source", eventFields["source"])),
		columns.Text("Message", eventFields["message"]),
		columns.Wide(columns.Text("First Seen", eventFields["firstTimestamp"])),
		columns.Wide(columns.Text("Count", eventFields["count"])),
		columns.Wide(columns.NameColumn),
	}
)

// groupEventLayout shows events.k8s.io/v1, the same objects under other field
// names.
func groupEventLayout() columns.Layout {
	return columns.Table(func(e *eventsv1.Event, now time.Time) []any {
		o := occurrence{
			first: e.DeprecatedFirstTimestamp.Time, last: e.DeprecatedLastTimestamp.Time,
			once: e.EventTime.Time, count: e.DeprecatedCount,
		}
		if e.Series != nil {
			o.series, o.last, o.count = true, e.Series.LastObservedTime.Time, e.Series.Count
		}
		first, last, count := o.cells(now)
		return []any{
			last, e.Type, e.Reason, eventTarget(&e.Regarding), e.Regarding.FieldPath,
			eventSource(&e.DeprecatedSource, e.ReportingController, e.ReportingInstance), strings.TrimSpace(e.Note),
			first, count, e.Name,
		}
	}, eventColumns...)
}

// occurrence is when and how often an event happened. Older reporters fill in
// first and last, newer ones once and, from the second time on, a series.
type occurrence struct {
	first, last, once time.Time
	count             int32
	series            bool
}

func (o occurrence) cells(now time.Time) (first, last string, count int64) {
	if o.first.IsZero() {
		o.first = o.once
	}
	if !o.series {
		if o.last.IsZero() {
			o.last = o.first
		}
		o.count = max(o.count, 1)
	}
	return columns.SinceTime(o.first, now), columns.SinceTime(o.last, now), int64(o.count)
}

func eventTarget(ref *corev1.ObjectReference) string {
	kind := strings.ToLower(ref.Kind)
	if ref.Name == "" {
		return kind
	}
	return kind + "/" + ref.Name
}

func eventSource(source *corev1.EventSource, controller, instance string) string {
	component, host := columns.Or(source.Component, controller), columns.Or(source.Host, instance)
	if host == "" {
		return component
	}
	return component + ", " + host
}

func coreEventLayout() columns.Layout {
	return columns.Table(func(e *corev1.Event, now time.Time) []any {
		o := occurrence{first: e.FirstTimestamp.Time, last: e.LastTimestamp.Time, once: e.EventTime.Time, count: e.Count}
		if e.Series != nil {
			o.series, o.last, o.count = true, e.Series.LastObservedTime.Time, e.Series.Count
		}
		first, last, count := o.cells(now)
		return []any{
			last, e.Type, e.Reason, eventTarget(&e.InvolvedObject), e.InvolvedObject.FieldPath,
			eventSource(&e.Source, e.ReportingController, e.ReportingInstance), strings.TrimSpace(e.Message),
			first, count, e.Name,
		}
	}, eventColumns...)
}
