package request

import (
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/status"
)

// MaxSelectorBytes bounds the selectors of a request.
const MaxSelectorBytes = 16 << 10

// ListOptions reads the query of a list, a watch or a delete of a collection. What
// the options mean, and whether they go together, is package read's part.
func ListOptions(query url.Values) (opts metav1.ListOptions, err error) {
	opts = metav1.ListOptions{
		LabelSelector:        query.Get("labelSelector"),
		FieldSelector:        query.Get("fieldSelector"),
		ShardSelector:        query.Get("shardSelector"),
		ResourceVersion:      query.Get("resourceVersion"),
		ResourceVersionMatch: metav1.ResourceVersionMatch(query.Get("resourceVersionMatch")),
		Continue:             query.Get("continue"),
		AllowWatchBookmarks:  IsTrue(query, "allowWatchBookmarks"),
	}
	if n := len(opts.LabelSelector) + len(opts.FieldSelector) + len(opts.ShardSelector); n > MaxSelectorBytes {
		return opts, status.BadRequest("the selectors of one request may have %d bytes, and these have %d: select by a label that the objects share, or in several requests",
			MaxSelectorBytes, n)
	}
	if query.Has("sendInitialEvents") {
		send := IsTrue(query, "sendInitialEvents")
		opts.SendInitialEvents = &send
	}
	if opts.TimeoutSeconds, err = number(query, "timeoutSeconds"); err != nil {
		return opts, err
	}
	limit, err := number(query, "limit")
	if limit != nil {
		opts.Limit = *limit
	}
	return opts, err
}

// number reads a whole number as Kubernetes does, which refuses one that is there and empty; nil if the
// query does not have it.
func number(query url.Values, name string) (*int64, error) {
	if !query.Has(name) {
		return nil, nil
	}
	n, err := strconv.ParseInt(query.Get(name), 10, 64)
	if err != nil {
		return nil, status.BadRequest("%v", err)
	}
	return &n, nil
}

// IntParameter reads a whole number; 0 if the query does not have it.
func IntParameter(query url.Values, name string) (int64, error) {
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
