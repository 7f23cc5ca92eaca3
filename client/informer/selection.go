package informer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/scheme"
)

// ListOptions says which objects of a resource an informer looks at. Each
// different value is another informer with a watch of its own.
type ListOptions struct {
	// Namespace limits the informer. A cluster-scoped resource has none: the informer does
	// not run, or ends with a *client.ScopeError if the scheme does not know the scope and
	// the server says it. One that equals the factory's counts as not given. Default: the
	// factory's, see Options.Namespace.
	Namespace string
	// Namespaces limits the informer to several: one cache, one Synced and
	// one set of handlers over a list and a watch for each. An identity that
	// may not look at all namespaces can look at those that it may. Order and
	// repetitions do not matter. It excludes Namespace, and cannot be kept on
	// disk. The functions of Options.Reflector are called from a goroutine for
	// each. A list that is empty and not nil is an error: a program may have computed it,
	// and means none, where all would be watched. For all namespaces leave it nil.
	// Default: what Namespace says.
	Namespaces []string
	// Visible limits the informer to the namespaces that its user may list and watch, and
	// follows grants and withdrawals: handlers see objects come and go with the rights to
	// them. It excludes Namespace and Namespaces, cannot be kept on disk, as the next user may be
	// another one, and needs a Levelwire server with --filtered-lists; see [client.Resource.Visible].
	Visible bool
	// LabelSelector and FieldSelector are applied by the server.
	LabelSelector, FieldSelector string
	// Modifier changes the options of each list and watch after everything else
	// has set them. Default: they are not changed.
	Modifier ListModifier
}

// ListModifier is a function with a name. The factory cannot compare functions:
// informers whose modifiers have the same name are one.
type ListModifier struct {
	// Name is required with Modify.
	Name string
	// Modify may change selectors. It must leave alone what a resume depends on:
	// resourceVersion, limit, timeout and bookmarks. It is called once with sample
	// options, to check that, and then for each request. A request for which it panics is
	// not sent, and has failed.
	Modify func(*metav1.ListOptions)
}

// in returns the options with what the factory says where they say nothing. A
// resource that is not in namespaces is not limited to the factory's.
func (o ListOptions) in(f Options, scope scheme.Scope) ListOptions {
	if o.Namespaces != nil {
		o.Namespaces = slices.Clone(o.Namespaces)
		slices.Sort(o.Namespaces)
		o.Namespaces = slices.Compact(o.Namespaces)
	} else if o.Namespace == "" && !o.Visible && scope != scheme.Cluster {
		o.Namespace = f.Namespace
	}
	return o
}

// isDefaultIn reports whether the factory's namespace is what limits the informer, or would
// if its resource were in namespaces. Those who give that namespace themselves share the
// informer of those who do not.
func (o ListOptions) isDefaultIn(f Options, scope scheme.Scope) bool {
	switch {
	case f.Namespace == "" || o.Visible || len(o.Namespaces) > 0 || scope == scheme.Namespaced:
		return false
	case scope == scheme.Cluster:
		return o.Namespace == ""
	default:
		return o.Namespace == f.Namespace
	}
}

// isEmpty reports whether there is a list of namespaces that has none. The informer does not
// run, and must not be the one of all namespaces.
func (o ListOptions) isEmpty() bool { return o.Namespaces != nil && len(o.Namespaces) == 0 }

// namespaces are those to list and watch one by one; "" is all at once.
func (o ListOptions) namespaces() []string {
	if len(o.Namespaces) > 0 {
		return o.Namespaces
	}
	return []string{o.Namespace}
}

// apply has the server select.
func (o ListOptions) apply(opts *metav1.ListOptions) {
	opts.LabelSelector, opts.FieldSelector = o.LabelSelector, o.FieldSelector
	if o.Modifier.Modify != nil {
		o.Modifier.Modify(opts)
	}
}

// key is equal for options that select the same.
func (o ListOptions) key() string {
	special := ""
	if o.Visible {
		special = "visible"
	}
	if o.isEmpty() {
		special += "none"
	}
	return special + fmt.Sprintf("%q", append([]string{o.Namespace, o.LabelSelector, o.FieldSelector, o.Modifier.Name}, o.Namespaces...))
}

// describe says what is selected; "" for everything.
func (o ListOptions) describe() string {
	var limits []string
	if o.Visible {
		limits = append(limits, "what the user may see")
	}
	if o.isEmpty() {
		limits = append(limits, "no namespaces")
	}
	for _, limit := range []struct{ what, value string }{
		{"namespace", o.Namespace}, {"namespaces", strings.Join(o.Namespaces, " ")},
		{"labels", o.LabelSelector}, {"fields", o.FieldSelector}, {"modifier", o.Modifier.Name},
	} {
		if limit.value != "" {
			limits = append(limits, limit.what+" "+limit.value)
		}
	}
	return strings.Join(limits, ", ")
}

// listToken is a continue token of several lists one after another.
type listToken struct {
	list         int
	own, version string // of that list's last page; "": its first page comes next
}

func parseListToken(token string) (t listToken) {
	number, rest, _ := strings.Cut(token, "|")
	t.version, t.own, _ = strings.Cut(rest, "|")
	t.list, _ = strconv.Atoi(number)
	return t
}

func (t listToken) String() string { return fmt.Sprintf("%d|%s|%s", t.list, t.version, t.own) }

// check returns an error unless a page can be what the token leads to. Objects that a
// broken page lacks would be taken for deleted. A server that selects may send an
// empty last page, but seldom.
func (t listToken) check(page *client.List[*metav1.PartialObjectMetadata]) error {
	switch {
	case t.own == "":
		return nil
	case page.ResourceVersion != t.version:
		return fmt.Errorf("a page of resourceVersion %q follows one of %q", page.ResourceVersion, t.version)
	case len(page.Items) == 0:
		return errors.New("a page without items follows others")
	}
	return nil
}

// checkNamespace returns an error if an object is not in the namespace of several that was asked for. What
// is missing in its place would be taken for deleted.
func checkNamespace(page *client.List[*metav1.PartialObjectMetadata], namespace string) error {
	for _, item := range page.Items {
		if item.Namespace != namespace {
			return fmt.Errorf("%q, asked for in namespace %q, is in namespace %q", item.Name, namespace, item.Namespace)
		}
	}
	return nil
}

// madeBy is what a Factory was asked for; empty for informers of [New].
type madeBy struct {
	resource  schema.GroupVersionResource
	selection ListOptions
	scope     *servedScope // nil: the namespaces are the informer's own
}

// GroupVersionResource says which resource the informer watches. It is empty for
// an informer that was made by [New], around a source of which nothing is known.
func (i *SharedInformer[T]) GroupVersionResource() schema.GroupVersionResource {
	return i.made.resource
}

// ListOptions says which objects the informer watches: what the Factory was asked
// for, with the Factory's own namespace unless the resource is cluster-scoped, which may
// turn out when the informer runs. It is empty for an informer that was made by [New].
func (i *SharedInformer[T]) ListOptions() ListOptions {
	selection := i.made.selection
	if i.made.scope.isCluster() {
		selection.Namespace = ""
	}
	return selection
}

// Client returns the client with which the factory's informers read.
func (f *Factory) Client() *client.Client { return f.client }
