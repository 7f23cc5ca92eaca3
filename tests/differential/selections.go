package differential

import (
	"net/http"
	"net/url"
)

// selectedFields are the fields by which objects of some kind can be selected, and one of none, with a
// value that an object may have.
var selectedFields = []struct{ name, value string }{
	{"metadata.namespace", namespace}, {"spec.nodeName", "one"}, {"spec.restartPolicy", "Always"}, {"spec.schedulerName", "default-scheduler"},
	{"spec.serviceAccountName", "default"}, {"spec.hostNetwork", "false"}, {"status.phase", "Pending"}, {"status.podIP", ""}, {"status.podIPs", ""},
	{"status.nominatedNodeName", ""}, {"spec.unschedulable", "false"}, {"spec.host", ""}, {"type", "Opaque"}, {"status.replicas", "0"},
	{"status.successful", "0"}, {"spec.signerName", "example.com/a"}, {"spec.podName", "example"}, {"spec.clusterIP", "None"}, {"spec.type", "ClusterIP"},
	{"spec.driver", "example.com"}, {"reason", "example"}, {"source", "example"}, {"reportingComponent", "example"}, {"regarding.name", "example"},
	{"involvedObject.kind", "Pod"}, {"involvedObject.namespace", namespace}, {"involvedObject.name", "example"}, {"involvedObject.uid", ""},
	{"involvedObject.apiVersion", "v1"}, {"involvedObject.resourceVersion", ""}, {"involvedObject.fieldPath", ""}, {"metadata.uid", ""}, {"spec.group", "example.com"},
}

// selectionsOf asks for an object by each field, and watches it while it comes into a selection and
// leaves it.
func selectionsOf(o *object) []step {
	merge := func(name string, body func(*player) any) step {
		return step{name: name, method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: body}
	}
	steps := []step{
		{name: "list before", query: thisOne},
		{name: "create", method: http.MethodPost, body: theBase},
		merge("select", label("selected", "x")),
		merge("change the selected", label("other", "y")),
		merge("select no more", label("selected", "z")),
		merge("select again", label("selected", "x")),
	}
	for _, f := range selectedFields {
		value := url.QueryEscape(f.value)
		steps = append(steps,
			step{name: "list " + f.name + "=" + f.value, query: thisOne + "," + f.name + "%3D" + value},
			step{name: "list " + f.name + "!=" + f.value, query: thisOne + "," + f.name + "!%3D" + value},
		)
	}
	events := 5
	if o.kind.Kind == "Pod" {
		steps = append(steps, step{name: "bind", method: http.MethodPost, at: "/{name}/binding", body: func(p *player) any {
			return map[string]any{"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": nameOf(p.base)}, "target": map[string]any{"kind": "Node", "name": "one"}}
		}})
		events++
	}
	since := "watch=true&resourceVersion=$since&timeoutSeconds=5&"
	steps = append(steps,
		step{name: "delete", method: http.MethodDelete, at: "/{name}", query: "gracePeriodSeconds=0"},
		step{name: "watch the selected", query: since + thisOne + "&labelSelector=selected%3Dx", events: events},
		step{name: "watch those that are not selected", query: since + thisOne + "&labelSelector=selected!%3Dx", events: 4},
	)
	if o.kind.Kind == "Pod" {
		steps = append(steps, step{name: "watch those of the node", query: since + "fieldSelector=spec.nodeName%3Done", events: 2})
	}
	return steps
}
