package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/scheme"
)

// Served asks the server's discovery whether it serves the resource, in one
// request, or two if it does not serve the group version. It returns false only if
// the server says so: its list of the group version lacks the resource, or its list
// of groups lacks the group version. Anything else that is not true is an error: a
// server that cannot be reached, a proxy's page, an identity that may not discover.
// Nothing is cached.
func (r Resource[T]) Served(ctx context.Context) (bool, error) {
	found, err := r.discover(ctx)
	return found != nil, err
}

// servedResource is what is used of an APIResource. A document that does not say whether
// objects are in namespaces must not pass for one that says that they are not.
type servedResource struct {
	Name       string `json:"name"`
	Namespaced *bool  `json:"namespaced"`
}

// discover returns the resource's entry in the server's discovery; nil: the server says
// that it does not serve it.
func (r Resource[T]) discover(ctx context.Context) (*servedResource, error) {
	gv := r.gvr.GroupVersion()
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	var list struct {
		Kind         string            `json:"kind"`
		GroupVersion string            `json:"groupVersion"`
		Resources    *[]servedResource `json:"resources"`
	}
	err := r.client.getJSON(ctx, path, &list)
	if apierrors.IsNotFound(err) && gv.Group != "" {
		return nil, r.client.confirmNoGroupVersion(ctx, gv.Group, gv.String())
	}
	if err != nil {
		return nil, err
	}
	if list.Kind != "APIResourceList" {
		return nil, &DecodeError{What: path, Err: fmt.Errorf("the kind is %q and not APIResourceList", list.Kind)}
	}
	if list.GroupVersion != "" && list.GroupVersion != gv.String() {
		return nil, &DecodeError{What: path, Err: fmt.Errorf("it is the list of %q", list.GroupVersion)}
	}
	if list.Resources == nil { // it does not say that there are none
		return nil, &DecodeError{What: path, Err: errors.New("the list has no resources member")}
	}
	for _, resource := range *list.Resources {
		if resource.Name == r.gvr.Resource {
			return &resource, nil
		}
	}
	return nil, nil
}

// confirmNoGroupVersion looks for a group version that answered with 404 in the list
// of groups. If it is in there, the server contradicts itself.
func (c *Client) confirmNoGroupVersion(ctx context.Context, group, groupVersion string) error {
	var groups metav1.APIGroupList
	if err := c.getJSON(ctx, "/apis", &groups); err != nil {
		return err
	}
	if groups.Kind != "APIGroupList" {
		return &DecodeError{What: "/apis", Err: fmt.Errorf("the kind is %q and not APIGroupList", groups.Kind)}
	}
	if groups.Groups == nil { // it does not say that there are none
		return &DecodeError{What: "/apis", Err: errors.New("the list has no groups member")}
	}
	for _, g := range groups.Groups {
		if g.Name != group {
			continue
		}
		for _, version := range g.Versions {
			if version.GroupVersion == groupVersion {
				return fmt.Errorf("/apis/%s was not found, though /apis lists it", groupVersion)
			}
		}
	}
	return nil
}

// getJSON reads a document that is no object of a resource.
func (c *Client) getJSON(ctx context.Context, path string, into any) error {
	data, _, err := c.readAll(ctx, &request{verb: "discover", method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return &DecodeError{What: path, Err: err}
	}
	return nil
}

// explain adds to a 404 that does not name the object what may be its reason: the
// server has no such path. That is so for a resource that it does not serve, and for one
// that was asked for in the wrong place, which check refuses if the scope is known.
// A 415 for a strategic merge patch says what to send in its place. Other errors stay as
// they are.
func (r Resource[T]) explain(ctx context.Context, q call, err error) error {
	if q.contentType == string(types.StrategicMergePatchType) && apierrors.IsUnsupportedMediaType(err) && IsStatus(err) {
		return fmt.Errorf("%s %s: the server takes no strategic merge patch of this kind, as of no custom resource: use MergePatch, patch.Merge or Apply (%w)",
			q.verb, r.gvr.GroupResource(), err)
	}
	var status apierrors.APIStatus
	if err == nil || !apierrors.IsNotFound(err) && !isNotFoundPage(err) || !errors.As(err, &status) {
		return err
	}
	// The details of an answer without a Status are the request's.
	if IsStatus(err) && namesObject(status.Status(), q.name) {
		return err
	}
	if misplaced := r.misplaced(ctx, q); misplaced != nil {
		return fmt.Errorf("%s %s: %w", q.verb, r.gvr.Resource, misplaced) // not err: nobody has looked for the object
	}
	what := r.gvr.GroupResource().String() + "/" + r.gvr.Version
	return fmt.Errorf("%s %s: the server does not serve it: %s (%w)", q.verb, what, r.notServedHint(q), err)
}

// misplaced returns a *ScopeError if the server's discovery says that a call for one
// object, or for those of one namespace, lacked its namespace or had one too many. Lists
// have CheckScope for that.
func (r Resource[T]) misplaced(ctx context.Context, q call) error {
	if !q.needsNamespace() || q.subresource != "" && r.mapping.Scope != "" || scheme.IsBuiltin(reflect.TypeFor[T]()) {
		return nil // or the scope is certain
	}
	scope, err := r.ServedScope(ctx)
	if err != nil || scope == "" || (scope == scheme.Cluster) == (r.namespace == "") {
		return nil
	}
	return &ScopeError{Resource: r.gvr, Scope: scope, Namespace: r.namespace, Registered: r.mapping.Scope}
}

// isNotFoundPage reports whether the answer was the plain page of kube-apiserver, or of
// another server in Go. For a request for one object that is not NotFound; see
// [UnexpectedResponseError].
func isNotFoundPage(err error) bool {
	var page *UnexpectedResponseError
	return errors.As(err, &page) && page.Code == http.StatusNotFound && page.ContentType == "text/plain" && page.Excerpt == goNotFoundPage
}

// namesObject reports whether a Status is about an object: the one that was asked for, or
// a namespace, say.
func namesObject(status metav1.Status, name string) bool {
	return status.Details != nil && status.Details.Name != "" || name != "" && strings.Contains(status.Message, strconv.Quote(name))
}

// notServedHint asks for what is most likely wrong if the server does not serve a call's path.
func (r Resource[T]) notServedHint(q call) string {
	group := r.gvr.Group
	switch {
	case r.mapping.Scope == "" && r.namespace == "" && q.needsNamespace():
		return fmt.Sprintf("no namespace was given: if %s are namespaced, call Namespace", r.gvr.Resource)
	case q.subresource != "":
		return fmt.Sprintf("does the resource have the subresource %q, and does the object exist?", q.subresource)
	case strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io"):
		hint := fmt.Sprintf("is its CustomResourceDefinition installed, and is its plural %q right (scheme.Mapping.Resource)?", r.gvr.Resource)
		if r.namespace != "" {
			hint += " If it is cluster-scoped, give no namespace."
		}
		return hint
	default:
		return "is it an address of an API server, and is the API version enabled there?"
	}
}
