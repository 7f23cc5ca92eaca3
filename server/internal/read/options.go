package read

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/shard"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// selectors are what the options of a request select, parsed.
type selectors struct {
	labels labels.Selector // never nil
	fields fields.Selector // never nil
	shard  *shard.Selector // nil for the whole collection
}

// parse checks the options, in the order and the words of Kubernetes: each for itself, then with
// validate against each other, and then whether the fields can be selected. A name in the path becomes a
// field selector; beside it, the request's own has to select that name, too.
func (s Scope) parse(opts *metav1.ListOptions, validate func(*metav1.ListOptions) error) (sel selectors, err error) {
	if sel.labels, err = labels.Parse(opts.LabelSelector); err != nil {
		return sel, status.BadRequest("%v", err)
	}
	if sel.fields, err = fields.ParseSelector(opts.FieldSelector); err != nil {
		return sel, status.BadRequest("%v", err)
	}
	if opts.ShardSelector != "" {
		if sel.shard, err = shard.Parse(opts.ShardSelector); err != nil {
			return sel, status.BadRequest("unable to parse shardSelector: %v", err)
		}
	}
	if err := validate(opts); err != nil {
		return sel, err
	}
	if sel.fields, err = fieldLabels(s.Resource, sel.fields); err != nil {
		return sel, status.BadRequest("%v", err)
	}
	if s.Name == "" {
		return sel, nil
	}
	byName := fields.OneTermEqualSelector(nameField, s.Name)
	if sel.fields.Empty() {
		sel.fields = byName
		return sel, nil
	}
	if name, ok := sel.fields.RequiresExactMatch(nameField); !ok || name != s.Name {
		return sel, status.BadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	sel.fields = fields.AndSelectors(byName, sel.fields)
	return sel, nil
}

// selectsOne reports whether the fields of a list have the name, and the namespace if there is one, of a
// single object, which kube-apiserver reads as a get.
func (s Scope) selectsOne(sel selectors, opts *metav1.ListOptions) bool {
	if _, byName := sel.fields.RequiresExactMatch(nameField); !byName || opts.Continue != "" {
		return false
	}
	if !s.Resource.Namespaced || s.Namespace != "" {
		return true
	}
	_, inNamespace := sel.fields.RequiresExactMatch("metadata.namespace")
	return inNamespace
}

// withoutLegacyMatch returns the options of a list of a single object: a limit does not make their
// resourceVersion an exact one, as that of other lists.
func withoutLegacyMatch(opts *metav1.ListOptions) *metav1.ListOptions {
	if opts.ResourceVersionMatch != "" || opts.ResourceVersion == "" {
		return opts
	}
	atLeast := *opts
	atLeast.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	return &atLeast
}

// nameField is the field that a name in the path stands for.
const nameField = "metadata.name"

// fieldLabels returns a field selector with the names of res' own fields.
func fieldLabels(res *resource.Resource, selector fields.Selector) (fields.Selector, error) {
	if selector.Empty() {
		return selector, nil
	}
	return selector.Transform(func(name, value string) (string, string, error) {
		label, err := res.FieldLabel(name)
		return label, value, err
	})
}

// Selection checks the options of a list and compiles what they select, for a delete of a
// collection.
func (s Scope) Selection(opts *metav1.ListOptions) (*watchcache.Selection, error) {
	sel, err := s.parse(opts, validateList)
	if err != nil {
		return nil, err
	}
	return s.selection(sel)
}

// selection compiles selectors for the cache.
func (s Scope) selection(sel selectors) (*watchcache.Selection, error) {
	selection, err := watchcache.NewSelection(s.Resource, s.Namespace, s.Name, sel.labels, sel.fields)
	if err != nil {
		return nil, status.BadRequest("%v", err)
	}
	return selection.Within(sel.shard), nil
}
