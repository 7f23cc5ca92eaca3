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

// parse checks each option for itself. A name in the path becomes a field selector;
// one that contradicts the request's field selector is a 400.
func (s Scope) parse(opts *metav1.ListOptions) (sel selectors, err error) {
	if opts.Limit < 0 {
		return sel, invalidOptions(fieldInvalid("limit", opts.Limit, "must not be negative"))
	}
	if sel.labels, err = labels.Parse(opts.LabelSelector); err != nil {
		return sel, status.BadRequest("unable to parse labelSelector: %v", err)
	}
	if sel.fields, err = fields.ParseSelector(opts.FieldSelector); err != nil {
		return sel, status.BadRequest("unable to parse fieldSelector: %v", err)
	}
	for _, requirement := range sel.fields.Requirements() {
		if !selectable(s.Resource, requirement.Field) {
			return sel, status.BadRequest("field label not supported: %s", requirement.Field)
		}
	}
	if opts.ShardSelector != "" {
		if sel.shard, err = shard.Parse(opts.ShardSelector); err != nil {
			return sel, status.BadRequest("unable to parse shardSelector: %v", err)
		}
	}
	if s.Name == "" {
		return sel, nil
	}
	if name, ok := sel.fields.RequiresExactMatch("metadata.name"); ok && name != s.Name {
		return sel, status.BadRequest("fieldSelector metadata.name=%s contradicts the name %q in the path", name, s.Name)
	}
	sel.fields = fields.AndSelectors(fields.OneTermEqualSelector("metadata.name", s.Name), sel.fields)
	return sel, nil
}

func selectable(res *resource.Resource, field string) bool {
	if field == "metadata.name" || field == "metadata.namespace" {
		return true
	}
	_, ok := res.FieldIndex(field)
	return ok
}

// Selection checks the options of a list and compiles what they select, for a delete of a
// collection.
func (s Scope) Selection(opts *metav1.ListOptions) (*watchcache.Selection, error) {
	sel, err := s.parse(opts)
	if err == nil {
		err = validateList(opts)
	}
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
