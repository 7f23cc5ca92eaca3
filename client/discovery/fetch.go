package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/scheme"
)

// Fetch asks the server what it serves, in all versions: the preferred version of a
// group first, groups in the server's order. It takes two requests with a server that
// offers aggregated discovery, one for each group version with others.
//
// What cannot be asked is left out and named in the error; the rest is valid. That is a
// group version whose server is down, or sends no whole answer within 30 seconds, repeated
// requests included, or all of the core group or of the others, if the
// document at /api or /apis cannot be had: a server made of k8s.io/apiserver alone has no
// core group, and answers 404, which apierrors.IsNotFound reports. If neither document
// can be had, the result is empty. [FailedGroups] returns what the error is about.
func Fetch(ctx context.Context, c *client.Client) ([]Resource, error) {
	d, err := fetch(ctx, c, nil)
	return d.resources, errors.Join(err, d.failed())
}

// document is what a server answered.
type document struct {
	resources []Resource
	failures  []failure
	roots     []root
}

// failed is the error about all group versions that could not be asked.
func (d document) failed() error {
	return d.failedOf(func(schema.GroupVersion) bool { return true })
}

// failedOf is the error about those group versions that could not be asked.
func (d document) failedOf(is func(schema.GroupVersion) bool) error {
	var all []failure
	for _, f := range d.failures {
		if is(f.version) {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &failedError{all}
}

// failedError is the error about group versions that could not be asked.
type failedError struct{ failures []failure }

// Error implements error.
func (e *failedError) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap is for errors.Is and errors.As.
func (e *failedError) Unwrap() (all []error) {
	for _, f := range e.failures {
		all = append(all, f.err)
	}
	return all
}

// FailedGroups returns the group versions that an error of [Fetch] is about, and why each could not be asked; none if it is
// about something else. If the document at /api or /apis could not be had, the version is "*", and at /apis the group as
// well: it may have been any.
func FailedGroups(err error) map[schema.GroupVersion]error {
	var failed *failedError
	if !errors.As(err, &failed) {
		return nil
	}
	groups := make(map[schema.GroupVersion]error, len(failed.failures))
	for _, f := range failed.failures {
		groups[f.version] = f.err
	}
	return groups
}

// failure says why a group version could not be asked. If a whole root could not be, the
// version is any, and the group as well at /apis.
type failure struct {
	version schema.GroupVersion
	err     error
}

// anyName stands for all groups but the core one, or for all versions, in a failure.
const anyName = "*"

// mayHave returns whether a resource of a group could be served in a group version, or
// in one of those that could not be asked. An empty version is any.
func mayHave(gv schema.GroupVersion, group, version string) bool {
	inGroup := gv.Group == group || gv.Group == anyName && group != ""
	return inGroup && (version == "" || gv.Version == version || gv.Version == anyName)
}

// roots are the documents that name the group versions: of the core group, and of the others.
var roots = []struct {
	path string
	all  schema.GroupVersion // what fails with the document
}{
	{"/api", schema.GroupVersion{Version: anyName}},
	{"/apis", schema.GroupVersion{Group: anyName, Version: anyName}},
}

// root is the answer at /api or /apis, to ask whether it has changed. Of what could not
// be asked it has the resources of an earlier answer, if any.
type root struct {
	etag      string // empty: unknown
	resources []Resource
	failures  []failure
}

// of returns the resources of a group version; none if there is no root.
func (r *root) of(gv schema.GroupVersion) (resources []Resource) {
	if r == nil {
		return nil
	}
	for _, resource := range r.resources {
		if resource.Mapping.Kind.GroupVersion() == gv {
			resources = append(resources, resource)
		}
	}
	return resources
}

// acceptAggregated asks for all groups in one document (KEP-3352).
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

const (
	maxDocument = 64 << 20 // bytes of one answer
	maxAtOnce   = 8        // requests for group versions
	// maxWait is for one document: a server behind the API server that does not answer
	// must not keep the kinds of all others from being known.
	maxWait = 30 * time.Second
)

// errSlow is the end of a request that took maxWait.
var errSlow = fmt.Errorf("there was no answer within %v", maxWait)

// fetch asks a server; it takes from earlier, unless nil, what has not changed, and what
// cannot be asked.
func fetch(ctx context.Context, c *client.Client, earlier *document) (document, error) {
	var d document
	var refused []error
	for i, at := range roots {
		var before *root
		if earlier != nil {
			before = &earlier.roots[i]
		}
		r, err := fetchRoot(ctx, c, at.path, before)
		if err != nil {
			err = fmt.Errorf("discovery: %w", err)
			if ctx.Err() != nil || !answered(err) && !errors.Is(err, errSlow) {
				return document{}, err // and so would the other root
			}
			refused = append(refused, err)
			r = root{failures: []failure{{at.all, err}}}
			if before != nil {
				r.resources = before.resources
			}
		}
		d.roots = append(d.roots, r)
		d.resources = append(d.resources, r.resources...)
		d.failures = append(d.failures, r.failures...)
	}
	if len(refused) == len(roots) {
		return document{}, errors.Join(refused...)
	}
	d.resources = withNames(d.resources)
	markPreferred(d.resources)
	return d, nil
}

func fetchRoot(ctx context.Context, c *client.Client, path string, before *root) (root, error) {
	header := http.Header{"Accept": {acceptAggregated}}
	hasETag := before != nil && before.etag != ""
	if hasETag {
		header.Set("If-None-Match", before.etag)
	}
	resp, data, err := get(ctx, c, path, header) //nolint:bodyclose // get closes it
	switch {
	case err != nil:
		return root{}, err
	case resp.StatusCode == http.StatusNotModified && hasETag:
		return *before, nil
	case resp.StatusCode != http.StatusOK:
		return root{}, refusal(path, resp, data)
	case isAggregated(resp.Header.Get("Content-Type")):
		r, err := aggregated(path, data, before)
		r.etag = resp.Header.Get("ETag")
		return r, err
	}
	versions, err := groupVersions(path, data)
	if err != nil {
		return root{}, err
	}
	return eachVersion(ctx, c, versions, before)
}

// answered returns whether an error is about what the server answered, so that it can be
// reached.
func answered(err error) bool {
	var status apierrors.APIStatus
	var decode *client.DecodeError
	return errors.As(err, &status) || errors.As(err, &decode)
}

// get reads a document whole.
func get(ctx context.Context, c *client.Client, path string, header http.Header) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxWait, errSlow)
	defer cancel()
	resp, err := c.Raw(ctx, client.RawRequest{Path: path, Header: header})
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err == nil && len(data) > maxDocument:
		err = fmt.Errorf("the answer has more than %d bytes", maxDocument)
	case err != nil && context.Cause(ctx) == errSlow: //nolint:errorlint // it is that very one
		err = errSlow
	}
	if err != nil {
		return nil, nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return resp, data, nil
}

// refusal makes an error of an answer that is no document.
func refusal(path string, resp *http.Response, data []byte) error {
	if err := client.ResponseError(resp, data); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return fmt.Errorf("GET %s: the server answered %s", path, resp.Status)
}

func isAggregated(contentType string) bool {
	_, params, err := mime.ParseMediaType(contentType)
	return err == nil && params["g"] == "apidiscovery.k8s.io" && params["as"] == "APIGroupDiscoveryList"
}

// hasMember reports whether a document that has nothing says so.
func hasMember(data []byte, name string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(data, &members) == nil && members[name] != nil
}

// unsaid is the error for a document that may have been cut out of a whole one: it names
// nothing, and does not say that there is nothing.
func unsaid(path, member string) error {
	return &client.DecodeError{What: path, Err: fmt.Errorf("the document has no %s member", member)}
}

// groupDiscoveryList is the part of apidiscovery.k8s.io that is read, the same in all
// its versions.
type groupDiscoveryList struct {
	Kind  string `json:"kind"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string              `json:"version"`
			Freshness string              `json:"freshness"`
			Resources []resourceDiscovery `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

type resourceDiscovery struct {
	Resource         string                   `json:"resource"`
	ResponseKind     *metav1.GroupVersionKind `json:"responseKind"`
	Scope            scheme.Scope             `json:"scope"`
	SingularResource string                   `json:"singularResource"`
	Verbs            []string                 `json:"verbs"`
	ShortNames       []string                 `json:"shortNames"`
	Categories       []string                 `json:"categories"`
	Subresources     []struct {
		Subresource string `json:"subresource"`
	} `json:"subresources"`
}

// aggregated reads a document of all groups.
func aggregated(path string, data []byte, before *root) (root, error) {
	var list groupDiscoveryList
	if err := json.Unmarshal(data, &list); err != nil {
		return root{}, &client.DecodeError{What: path, Err: err}
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return root{}, &client.DecodeError{What: path, Err: fmt.Errorf("the kind is %q and not APIGroupDiscoveryList", list.Kind)}
	}
	if list.Items == nil && !hasMember(data, "items") {
		return root{}, unsaid(path, "items")
	}
	r := root{}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Metadata.Name, Version: version.Version}
			if version.Freshness == "Stale" {
				r.failures = append(r.failures, failure{gv, fmt.Errorf("%s: the server behind it cannot be asked", gv)})
				if len(version.Resources) == 0 {
					r.resources = append(r.resources, before.of(gv)...)
				}
			}
			for _, d := range version.Resources {
				if d.ResponseKind == nil || d.ResponseKind.Kind == "" {
					continue // only its subresources are served
				}
				resource := Resource{
					Mapping:  scheme.Mapping{Kind: gv.WithKind(d.ResponseKind.Kind), Resource: d.Resource, Scope: d.Scope},
					Singular: singularOf(d.SingularResource, d.ResponseKind.Kind), ShortNames: d.ShortNames,
					Categories: d.Categories, Verbs: d.Verbs,
				}
				for _, sub := range d.Subresources {
					resource.Subresources = append(resource.Subresources, sub.Subresource)
				}
				r.resources = append(r.resources, resource)
			}
		}
	}
	return r, nil
}

// groupVersions reads the root document of a server without aggregated discovery.
func groupVersions(path string, data []byte) ([]schema.GroupVersion, error) {
	var document struct {
		Kind     string            `json:"kind"`
		Versions []string          `json:"versions"` // at /api
		Groups   []metav1.APIGroup `json:"groups"`   // at /apis
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, &client.DecodeError{What: path, Err: err}
	}
	if document.Kind != "APIVersions" && document.Kind != "APIGroupList" {
		return nil, &client.DecodeError{What: path, Err: fmt.Errorf("the kind is %q: is this the address of an API server?", document.Kind)}
	}
	if document.Versions == nil && document.Groups == nil && !hasMember(data, "versions") && !hasMember(data, "groups") {
		return nil, unsaid(path, "groups")
	}
	var all []schema.GroupVersion
	for _, version := range document.Versions {
		all = append(all, schema.GroupVersion{Version: version})
	}
	for _, group := range document.Groups {
		for _, preferred := range []bool{true, false} {
			for _, v := range group.Versions {
				if v.Version != "" && (v.Version == group.PreferredVersion.Version) == preferred {
					all = append(all, schema.GroupVersion{Group: group.Name, Version: v.Version})
				}
			}
		}
	}
	return once(all, func(gv schema.GroupVersion) schema.GroupVersion { return gv }), nil
}

// once returns the first of all those that have the same key. It changes the slice.
func once[E any, K comparable](all []E, keyOf func(E) K) []E {
	seen := map[K]bool{}
	return slices.DeleteFunc(all, func(e E) bool {
		key := keyOf(e)
		repeated := seen[key]
		seen[key] = true
		return repeated
	})
}

// withNames returns the resources that can be asked for, each once: all but those without a name or kind. It changes
// the slice.
func withNames(resources []Resource) []Resource {
	resources = slices.DeleteFunc(resources, func(r Resource) bool { return r.Mapping.Resource == "" || r.Mapping.Kind.Kind == "" })
	return once(resources, Resource.GroupVersionResource)
}

// eachVersion asks for each group version.
func eachVersion(ctx context.Context, c *client.Client, versions []schema.GroupVersion, before *root) (root, error) {
	found := make([][]Resource, len(versions))
	failed := make([]error, len(versions))
	var group errgroup.Group
	group.SetLimit(maxAtOnce)
	for i, gv := range versions {
		group.Go(func() error {
			found[i], failed[i] = oneVersion(ctx, c, gv)
			return nil
		})
	}
	_ = group.Wait() // errors are in failed
	if err := context.Cause(ctx); err != nil {
		return root{}, err
	}
	var r root
	for i, gv := range versions {
		if failed[i] != nil {
			found[i] = before.of(gv)
			r.failures = append(r.failures, failure{gv, failed[i]})
		}
	}
	r.resources = slices.Concat(found...)
	return r, nil
}

func oneVersion(ctx context.Context, c *client.Client, gv schema.GroupVersion) ([]Resource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	resp, data, err := get(ctx, c, path, http.Header{"Accept": {"application/json"}}) //nolint:bodyclose // get closes it
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(path, resp, data)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, &client.DecodeError{What: path, Err: err}
	}
	// An answer without resources must be one that says so. Some aggregated servers leave out
	// the kind.
	if list.Kind != "APIResourceList" && (list.Kind != "" || list.APIResources == nil) {
		return nil, &client.DecodeError{What: path, Err: fmt.Errorf("the kind is %q and not APIResourceList", list.Kind)}
	}
	if list.APIResources == nil && !hasMember(data, "resources") {
		return nil, unsaid(path, "resources")
	}
	if list.GroupVersion != "" && list.GroupVersion != gv.String() {
		return nil, &client.DecodeError{What: path, Err: fmt.Errorf("it is the list of %q", list.GroupVersion)}
	}
	var resources []Resource
	subresources := map[string][]string{}
	for _, r := range list.APIResources {
		if parent, sub, ok := strings.Cut(r.Name, "/"); ok {
			subresources[parent] = append(subresources[parent], sub)
			continue
		}
		scope := scheme.Cluster
		if r.Namespaced {
			scope = scheme.Namespaced
		}
		resources = append(resources, Resource{
			Mapping:  scheme.Mapping{Kind: gv.WithKind(r.Kind), Resource: r.Name, Scope: scope},
			Singular: singularOf(r.SingularName, r.Kind), ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
		})
	}
	for i := range resources {
		resources[i].Subresources = subresources[resources[i].Mapping.Resource]
	}
	return resources, nil
}
