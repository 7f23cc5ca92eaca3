package apiserver

import (
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// listOptions reads the query of a list, a watch or a delete of a collection. What
// the options mean, and whether they go together, is package read's part.
func listOptions(query url.Values) (opts metav1.ListOptions, err error) {
	opts = metav1.ListOptions{
		LabelSelector:        query.Get("labelSelector"),
		FieldSelector:        query.Get("fieldSelector"),
		ShardSelector:        query.Get("shardSelector"),
		ResourceVersion:      query.Get("resourceVersion"),
		ResourceVersionMatch: metav1.ResourceVersionMatch(query.Get("resourceVersionMatch")),
		Continue:             query.Get("continue"),
		AllowWatchBookmarks:  request.IsTrue(query, "allowWatchBookmarks"),
	}
	if query.Has("sendInitialEvents") {
		send := request.IsTrue(query, "sendInitialEvents")
		opts.SendInitialEvents = &send
	}
	seconds, err := intParameter(query, "timeoutSeconds")
	if err != nil {
		return opts, err
	}
	if seconds != 0 {
		opts.TimeoutSeconds = new(seconds)
	}
	opts.Limit, err = intParameter(query, "limit")
	return opts, err
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
