// Package componentstatus asks the components of a control plane how they are, as kube-apiserver
// does for each request for ComponentStatuses. It keeps nothing of what they say.
package componentstatus
