package histories

import "strings"

// view is a selection of pods.
type view struct {
	name                      string
	namespace, labels, fields string
}

var namespaces = []string{"left", "right"}

// views are what each kind of client looks at.
var views = []view{
	{name: "all"},
	{name: "namespace", namespace: "left"},
	{name: "label", labels: "color=red"},
	{name: "node", fields: "spec.nodeName=n1"},
	{name: "phase", fields: "status.phase=Running"},
}

// selects decides by itself what the server is asked to decide.
func (v view) selects(s state) bool {
	namespace, _, _ := strings.Cut(s.key, "/")
	return (v.namespace == "" || v.namespace == namespace) &&
		(v.labels == "" || v.labels == "color="+s.color) &&
		(v.fields == "" || v.fields == "spec.nodeName="+s.node || v.fields == "status.phase="+s.phase)
}
