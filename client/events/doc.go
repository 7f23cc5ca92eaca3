// Package events reports what a component did or could not do as core/v1
// Events, which kubectl describe and kubectl events show. Reporting never
// blocks its caller and never grows without bound: it is a courtesy, not a
// record.
//
// As in client-go, an event that occurs again raises the count of its Event
// object, many similar events become one ([Options.CombineAfter]), and an
// object with too many events is throttled ([Options.Burst]). An object whose name an
// Event cannot have, such as system:node, has events, too. [Recorder.Stats] counts what
// was written and what was dropped.
package events
