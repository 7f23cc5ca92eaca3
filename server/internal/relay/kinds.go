package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// kinds finds out what the upstream serves, by its discovery, when a resource is first
// asked for.
type kinds struct {
	client  *client.Client
	builtin *resource.Table
}

// maxDiscoveryBytes bounds a discovery document.
const maxDiscoveryBytes = 16 << 20

// isName reports whether a kind may be called so. Users choose the names in a path, and the
// relay asks the upstream with credentials of its own: it must not ask for another path.
func isName(gvr schema.GroupVersionResource) bool {
	return (gvr.Group == "" || len(validation.IsDNS1123Subdomain(gvr.Group)) == 0) &&
		len(validation.IsDNS1035Label(gvr.Version)) == 0 && len(validation.IsDNS1035Label(gvr.Resource)) == 0
}

// find returns a resource as the upstream serves it, nil if it does not serve it with
// both list and watch.
func (k *kinds) find(ctx context.Context, gvr schema.GroupVersionResource) (*resource.Resource, error) {
	path := "/api/" + gvr.Version
	if gvr.Group != "" {
		path = "/apis/" + gvr.Group + "/" + gvr.Version
	}
	response, err := k.client.Raw(ctx, client.RawRequest{Path: path, Header: http.Header{"Accept": {"application/json"}}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	if response.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDiscoveryBytes))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, client.ResponseError(response, body)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("discovery of %s: %w", gvr.GroupVersion(), err)
	}
	for i := range list.APIResources {
		if served := &list.APIResources[i]; served.Name == gvr.Resource {
			return k.describe(gvr, served), nil
		}
	}
	return nil, nil
}

// describe makes the resource of what discovery says.
func (k *kinds) describe(gvr schema.GroupVersionResource, served *metav1.APIResource) *resource.Resource {
	if !slices.Contains(served.Verbs, request.VerbList) || !slices.Contains(served.Verbs, request.VerbWatch) {
		return nil
	}
	if served.Group != "" && served.Group != gvr.Group || served.Version != "" && served.Version != gvr.Version {
		return nil // its objects are of another group or version
	}
	prefix := "/registry/" + gvr.Group + "/" + gvr.Version + "/" + gvr.Resource + "/"
	if known := k.builtin.Lookup(gvr.Group, gvr.Version, gvr.Resource); known != nil && known.Kind == served.Kind && known.Namespaced == served.Namespaced {
		return known.Unconverted(prefix, served.Verbs)
	}
	singular := served.SingularName
	if singular == "" {
		singular = strings.ToLower(served.Kind)
	}
	return &resource.Resource{
		Group: gvr.Group, Version: gvr.Version, Kind: served.Kind, ListKind: served.Kind + "List", Plural: gvr.Resource, Singular: singular,
		ShortNames: served.ShortNames, Categories: served.Categories, Namespaced: served.Namespaced, Verbs: served.Verbs, StorePrefix: prefix,
		New:     func() resource.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
}
