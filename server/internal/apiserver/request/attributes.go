package request

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Attributes returns what the authorizer decides about a request of a user for
// objects. They follow from the path, the method and the query alone, so that a
// user who may not know it does not learn which resources are served. A namespace
// counts as an object in itself; a list or a watch that selects one name counts as
// about that name.
func (t Path) Attributes(r *http.Request, user auth.User) auth.Attributes {
	a := auth.Attributes{
		User: user, Path: r.URL.Path,
		Group: t.Group, Version: t.Version, Resource: t.Plural, Subresource: t.Subresource,
		Namespace: t.Namespace, Name: t.Name,
	}
	if t.Plural == "namespaces" && t.Group == "" && !t.Namespaced {
		a.Namespace = t.Name
	}
	query, _ := url.ParseQuery(r.URL.RawQuery) // Resolve returns the error
	if a.Verb = VerbOf(r.Method, t, query); a.Verb == "" {
		a.Verb = refusedVerb(r.Method)
	}
	if t.Name != "" || t.Watch {
		return a // the selector has no meaning, or not everywhere
	}
	switch a.Verb {
	case VerbList, VerbWatch, VerbDeleteCollection:
		a.FieldSelector, a.LabelSelector = query.Get("fieldSelector"), query.Get("labelSelector")
		if a.Verb != VerbDeleteCollection {
			a.Name = selectedName(a.FieldSelector)
		}
	}
	return a
}

// refusedVerb names what a request asks for whose method is wrong for its path.
func refusedVerb(method string) string {
	if method == http.MethodPost {
		return VerbCreate
	}
	return strings.ToLower(method)
}

// selectedName returns the one name that a field selector leaves, or "".
func selectedName(selector string) string {
	if !strings.Contains(selector, metav1.ObjectNameField) {
		return ""
	}
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return ""
	}
	name, _ := parsed.RequiresExactMatch(metav1.ObjectNameField)
	if len(content.IsPathSegmentName(name)) > 0 {
		return ""
	}
	return name
}
