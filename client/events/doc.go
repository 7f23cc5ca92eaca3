// Package events reports what a component did or could not do as core/v1
// Events, which kubectl describe and kubectl events show. Reporting never
// blocks its caller and never grows without bound: it is a courtesy, not a
// record.
package events
