package inspect

import (
	"net/http"
	"time"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// logs answers debugapi.LogsPath.
func (h *Handler) logs(*http.Request) (any, error) {
	out := debugapi.Logs{Now: Rounded(time.Now()), Started: Rounded(h.Started), Watchers: h.Streams.Open(), Resources: []debugapi.Log{}}
	for _, res := range h.Resources.All() {
		if res.Storage != nil {
			continue // another version of what is stored has the same cache
		}
		cache := h.Cache(res)
		if cache == nil {
			continue
		}
		log := logOf(res, cache)
		out.Revision = max(out.Revision, log.Revision)
		out.Resources = append(out.Resources, log)
	}
	return out, nil
}

func logOf(res *resource.Resource, cache *watchcache.Cache) debugapi.Log {
	stats := cache.Stats()
	return debugapi.Log{
		Group: res.Group, Version: res.Version, Resource: res.Plural, Kind: res.Kind, Namespaced: res.Namespaced, Ready: cache.IsReady(),
		Objects: stats.Objects, ObjectBytes: stats.ObjectBytes,
		Revision: int64(cache.Reached()), Changed: int64(cache.StateRevision()),
		Oldest: int64(cache.ExactSince()), OldestTime: Moment(cache.OldestArrival()),
		Events: stats.HistoryLen, LogBytes: stats.HistoryBytes, FormBytes: stats.FormBytes, Tombstones: stats.Tombstones,
		Applied: stats.Events, Evicted: stats.Evicted, Watchers: stats.Watchers, Buckets: stats.Buckets,
		Resumes: debugapi.Resumes{
			Initial: stats.Resumes.Initial, Exact: stats.Resumes.Exact, Coalesced: stats.Resumes.Coalesced, Continued: stats.Resumes.Continued,
		},
		Expired: stats.Expired,
	}
}
