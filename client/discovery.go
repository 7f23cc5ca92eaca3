package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIResource is one resource that a server says it serves.
type APIResource struct {
	GroupVersionResource schema.GroupVersionResource
	Kind                 string
	Namespaced           bool
	Verbs                []string
}

// Discover asks the server what it serves, each group in the version it
// prefers, subresources left out. A group that cannot be asked is left out of
// the result and named in the error, which does not make the rest invalid.
func (c *Client) Discover(ctx context.Context) ([]APIResource, error) {
	found, err := c.discoverVersion(ctx, "/api/v1", schema.GroupVersion{Version: "v1"})
	if err != nil {
		return nil, err
	}
	var groups metav1.APIGroupList
	if err := c.getJSON(ctx, "/apis", &groups); err != nil {
		return nil, err
	}
	var failed []error
	for _, group := range groups.Groups {
		gv := schema.GroupVersion{Group: group.Name, Version: group.PreferredVersion.Version}
		resources, err := c.discoverVersion(ctx, "/apis/"+gv.String(), gv)
		if err != nil {
			failed = append(failed, err)
		}
		found = append(found, resources...)
	}
	return found, errors.Join(failed...)
}

func (c *Client) discoverVersion(ctx context.Context, path string, gv schema.GroupVersion) ([]APIResource, error) {
	var list metav1.APIResourceList
	if err := c.getJSON(ctx, path, &list); err != nil {
		return nil, err
	}
	var found []APIResource
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		found = append(found, APIResource{
			GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced, Verbs: r.Verbs,
		})
	}
	return found, nil
}

// getJSON reads a document that is no object of a resource.
func (c *Client) getJSON(ctx context.Context, path string, into any) error {
	data, _, err := c.readAll(ctx, &request{verb: "discover", method: http.MethodGet, path: path})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return &DecodeError{What: path, Err: err}
	}
	return nil
}
