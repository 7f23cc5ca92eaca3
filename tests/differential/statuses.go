package differential

import "net/http"

// statusesOf writes the status of an object, and asks what writes of the object leave of it, and how it is
// shown in tables.
func statusesOf(*object) []step {
	table := "application/json;as=Table;v=v1;g=meta.k8s.io"
	steps := []step{
		{name: "list before", query: thisOne},
		{name: "create", method: http.MethodPost, body: theBase}, // without its status
		{name: "put the status", method: http.MethodPut, at: "/{name}/status", body: currentWith("status")},
		{name: "get", at: "/{name}"},
		{name: "get as a table", at: "/{name}", accept: table},
		{name: "list as a table", query: thisOne, accept: table},
		{name: "put it again", method: http.MethodPut, at: "/{name}/status", body: theCurrent},
		{name: "put with a label", method: http.MethodPut, at: "/{name}", body: labelled("put", "a")},
		{name: "put without a status", method: http.MethodPut, at: "/{name}", body: currentWithout("status")},
		{name: "put the status of an old version", method: http.MethodPut, at: "/{name}/status", body: versioned1},
		{name: "put a status without a spec", method: http.MethodPut, at: "/{name}/status", body: currentWithout("spec")},
	}
	for _, contentType := range []string{asMergePatch, asStrategicPatch, asApplyPatch} {
		query := ""
		if contentType == asApplyPatch {
			query = "fieldManager=applier&force=true"
		}
		steps = append(steps,
			step{name: "take the status by " + contentType, method: http.MethodPatch, at: "/{name}/status", query: query, contentType: contentType, body: onlyStatus(nil)},
			step{name: "give it back by " + contentType, method: http.MethodPatch, at: "/{name}/status", query: query, contentType: contentType, body: statusOfBase},
			step{name: "the status beside it by " + contentType, method: http.MethodPatch, at: "/{name}", query: query, contentType: contentType, body: onlyStatus(map[string]any{})},
			step{name: "get after " + contentType, at: "/{name}"},
		)
	}
	return append(steps,
		step{name: "put an empty status", method: http.MethodPut, at: "/{name}/status", body: currentWithout("status")},
		step{name: "get at last", at: "/{name}"},
		step{name: "watch as a table", query: "watch=true&resourceVersion=$since&timeoutSeconds=5&" + thisOne, accept: table, events: 3},
	)
}

// currentWith is the current object with a member of the base.
func currentWith(member string) func(*player) any {
	return func(p *player) any { return with(p.current, member, p.base[member]) }
}

func currentWithout(member string) func(*player) any {
	return func(p *player) any {
		object := copyMembers(p.current)
		delete(object, member)
		return object
	}
}

func statusOfBase(p *player) any { return onlyStatus(p.base["status"])(p) }

// onlyStatus is an object with a name and a status.
func onlyStatus(status any) func(*player) any {
	return func(p *player) any {
		return with(appliedNothing(p).(map[string]any), "status", status)
	}
}
