// Package revisionhistory keeps the templates that a StatefulSet or DaemonSet had
// as ControllerRevisions, in the form that kubectl rollout history and undo
// read: a strategic merge patch that replaces spec.template.
package revisionhistory
