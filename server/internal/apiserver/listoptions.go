package apiserver

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/shard"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// listOptions are the query parameters of a list, a watch or a delete of a
// collection, parsed but not yet checked against each other.
type listOptions struct {
	labels  labels.Selector // never nil
	fields  fields.Selector // never nil
	shard   *shard.Selector // nil for the whole collection
	version string          // resourceVersion as it was sent
	match   metav1.ResourceVersionMatch
	limit   int64
	token   string // continue

	bookmarks         bool
	sendInitialEvents *bool
	timeout           time.Duration // 0: none was asked for
}

// parseListOptions reads the query of q. A name in the path becomes a field
// selector; one that contradicts the query's is a 400.
func parseListOptions(q *request) (listOptions, error) {
	o := listOptions{
		version:   q.query.Get("resourceVersion"),
		match:     metav1.ResourceVersionMatch(q.query.Get("resourceVersionMatch")),
		token:     q.query.Get("continue"),
		bookmarks: isTrue(q.query, "allowWatchBookmarks"),
	}
	if q.query.Has("sendInitialEvents") {
		send := isTrue(q.query, "sendInitialEvents")
		o.sendInitialEvents = &send
	}
	seconds, err := intParameter(q.query, "timeoutSeconds")
	if err != nil {
		return o, err
	}
	// A century is as good as for ever, and does not overflow a Duration.
	o.timeout = time.Duration(max(0, min(seconds, 100*365*24*3600))) * time.Second
	if o.limit, err = intParameter(q.query, "limit"); err != nil {
		return o, err
	}
	if o.limit < 0 {
		return o, invalidOptions(fieldInvalid("limit", o.limit, "must not be negative"))
	}
	return o, o.parseSelectors(q)
}

func (o *listOptions) parseSelectors(q *request) (err error) {
	if o.labels, err = labels.Parse(q.query.Get("labelSelector")); err != nil {
		return status.BadRequest("unable to parse labelSelector: %v", err)
	}
	if o.fields, err = fields.ParseSelector(q.query.Get("fieldSelector")); err != nil {
		return status.BadRequest("unable to parse fieldSelector: %v", err)
	}
	for _, requirement := range o.fields.Requirements() {
		if !selectable(q.resource, requirement.Field) {
			return status.BadRequest("field label not supported: %s", requirement.Field)
		}
	}
	if text := q.query.Get("shardSelector"); text != "" {
		if o.shard, err = shard.Parse(text); err != nil {
			return status.BadRequest("unable to parse shardSelector: %v", err)
		}
	}
	if q.name == "" {
		return nil
	}
	if name, ok := o.fields.RequiresExactMatch("metadata.name"); ok && name != q.name {
		return status.BadRequest("fieldSelector metadata.name=%s contradicts the name %q in the path", name, q.name)
	}
	o.fields = fields.AndSelectors(fields.OneTermEqualSelector("metadata.name", q.name), o.fields)
	return nil
}

func selectable(res *resource.Resource, field string) bool {
	if field == "metadata.name" || field == "metadata.namespace" {
		return true
	}
	_, ok := res.FieldIndex(field)
	return ok
}

func intParameter(query url.Values, name string) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, status.BadRequest("%s: %q is not a whole number", name, text)
	}
	return n, nil
}

// parseVersion reads a resourceVersion: "" is 0, and anything that is not a
// decimal number without leading zeros (KEP-5504) a 400.
func parseVersion(text string) (storage.Revision, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > math.MaxInt64 || text[0] == '0' && len(text) > 1 {
		return 0, status.BadRequest("resourceVersion: Invalid value: %q: must be a decimal number", text)
	}
	return storage.Revision(n), nil
}

func formatVersion(rev storage.Revision) string { return fmt.Sprint(int64(rev)) }
