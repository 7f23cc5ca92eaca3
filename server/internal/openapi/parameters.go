package openapi

import (
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// query makes a query parameter. uniqueItems is meaningless here, but stands in
// every published document, and generators of clients have come to expect it.
func query(name, kind, doc string) spec.Parameter { return parameter("query", name, kind, doc) }

func pathParameter(name, doc string) spec.Parameter {
	p := parameter("path", name, "string", doc)
	p.Required = true
	return p
}

func parameter(in, name, kind, doc string) spec.Parameter {
	return spec.Parameter{
		ParamProps:        spec.ParamProps{Name: name, In: in, Description: doc},
		SimpleSchema:      spec.SimpleSchema{Type: kind},
		CommonValidations: spec.CommonValidations{UniqueItems: true},
	}
}

var (
	pretty = query("pretty", "string", "If it is true, the answer is indented.")

	namespaceInPath = pathParameter("namespace", "The namespace of the objects.")

	dryRun          = query("dryRun", "string", "All: the request is checked and answered, and nothing is stored.")
	fieldManager    = query("fieldManager", "string", "Who makes the change: at most 128 printable characters, by default the first part of the User-Agent.")
	fieldValidation = query("fieldValidation", "string", "What becomes of unknown and duplicate fields. Ignore: they are dropped. Warn (default): dropped, with a warning. Strict: the request is refused.")
	force           = query("force", "boolean", "Server-side apply takes fields over that others own. It must not be set for other patches.")

	writeParameters  = []spec.Parameter{dryRun, fieldManager, fieldValidation}
	patchParameters  = []spec.Parameter{dryRun, fieldManager, fieldValidation, force}
	deleteParameters = []spec.Parameter{
		dryRun,
		query("gracePeriodSeconds", "integer", "Seconds until the object is deleted; 0 means at once. By default the kind decides."),
		query("orphanDependents", "boolean", "Deprecated: use propagationPolicy. If true, dependents are kept."),
		query("propagationPolicy", "string", "What becomes of dependents. Orphan: they are kept. Background: they are deleted afterwards. Foreground: they are deleted first."),
	}

	selectParameters = []spec.Parameter{
		query("continue", "string", "The token of the page before, to get the next one. It holds the list's version, and expires with it (410)."),
		query("fieldSelector", "string", "Only objects whose fields have these values."),
		query("labelSelector", "string", "Only objects whose labels match."),
		query("limit", "integer", "At most this many objects; the answer says in metadata.continue how to go on."),
		query("resourceVersion", "string", "The version that the answer is about; how strictly, says resourceVersionMatch."),
		query("resourceVersionMatch", "string", "Exact or NotOlderThan: how resourceVersion is meant."),
		query("shardSelector", "string", "Only objects of one part of a collection that is divided by a hash."),
		query("timeoutSeconds", "integer", "The longest time that the call may take."),
	}
	watchParameters = []spec.Parameter{
		query("allowWatchBookmarks", "boolean", "A watch sends events of type BOOKMARK, which only carry a version."),
		query("sendInitialEvents", "boolean", "A watch begins with the current state, ended by a bookmark. It needs resourceVersionMatch=NotOlderThan."),
		query("watch", "boolean", "Changes are sent as they happen, instead of a list."),
	}
)

// deleteBody describes the body that a DELETE may have.
func deleteBody(options *spec.Schema) spec.Parameter {
	return spec.Parameter{ParamProps: spec.ParamProps{Name: "body", In: "body", Schema: options}}
}

// objectBody describes the body that POST, PUT and PATCH must have.
func objectBody(schema *spec.Schema) spec.Parameter {
	return spec.Parameter{ParamProps: spec.ParamProps{Name: "body", In: "body", Schema: schema, Required: true}}
}
