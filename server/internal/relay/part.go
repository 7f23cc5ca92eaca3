package relay

import (
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/shard"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// A relay with Options.Shard keeps a part of each collection, and asks the upstream for that
// part (KEP-5866). An upstream that does not know shards ignores that and sends everything,
// so the relay selects again what it keeps.

// keeps reports whether the relay keeps an object.
func (s *source) keeps(o *watchcache.Object) bool {
	return s.relay.opts.Shard.Matches(o.Attributes.UID, o.Attributes.Namespace)
}

// ofShard limits a list or a watch of the upstream to what the relay keeps.
func (s *source) ofShard(opts metav1.ListOptions) metav1.ListOptions {
	opts.ShardSelector = s.relay.opts.Shard.String()
	return opts
}

// coversShard reports whether the relay keeps all that a list or a watch asks for.
func (r *Relay) coversShard(query url.Values) bool {
	if r.opts.Shard == nil {
		return true
	}
	text := query.Get("shardSelector")
	if text == "" {
		return false
	}
	asked, err := shard.Parse(text)
	return err == nil && r.opts.Shard.Covers(asked) // the upstream says what is wrong
}
