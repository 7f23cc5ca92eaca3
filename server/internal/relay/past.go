package relay

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Clients that come from another relay resume with the versions that they have. A cache that
// is filled with the most recent state has no history for them, and their watches would have
// to be passed on, all at the same moment. So the first fill is of the state at the oldest
// version that they have, and of some time before: the stream then brings all changes since.

// past is the version of which the first fill is to be.
type past struct {
	mu    sync.Mutex
	from  int64 // the smallest version that a client has; 0: none has any
	begun bool
}

const (
	// pastWait is how long clients may come before the first fill.
	pastWait = 50 * time.Millisecond
	// pastMargin is how many revisions before the oldest version are tried first: other
	// clients that come have versions that are not much older.
	pastMargin = 10_000
	// pastPage is the size of a page of the first fill.
	pastPage = 1000
)

// want notes the version of a client's watch.
func (p *past) want(query url.Values) {
	version, err := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	if err != nil || version <= 0 || query.Get("sendInitialEvents") == "true" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun && (p.from == 0 || version < p.from) {
		p.from = version
	}
}

// begin returns the version, which stays as it is from then on.
func (p *past) begin() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = true
	return p.from
}

// fillFromPast fills the cache with the state at the version that clients have, and returns
// that version, from which the reflector resumes. It returns "" if there is no such version,
// or the upstream does not have that state: the reflector then lists.
func (s *source) fillFromPast() string {
	s.pause(pastWait)
	from := s.past.begin()
	if from == 0 {
		return ""
	}
	for _, version := range []int64{max(from-pastMargin, 1), max(from-pastMargin/10, 1), from} {
		text := strconv.FormatInt(version, 10)
		objects, err := s.listExactly(text)
		if err == nil {
			err = s.fill(objects, text)
		}
		if err == nil {
			return text
		}
		s.relay.opts.Logger.Debug("a past state of the upstream cannot be had", "resource", s.res.GroupVersionResource(), "version", version, "error", err)
	}
	return ""
}

// listExactly lists the state at a version.
func (s *source) listExactly(version string) ([]*watchcache.Object, error) {
	ctx, cancel := context.WithTimeout(askingForRetained(s.warnings.noting(s.running)), s.relay.opts.FillTimeout)
	defer cancel()
	opts := metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: pastPage}
	var objects []*watchcache.Object
	for {
		list, err := s.endpoint.List(ctx, s.ofShard(opts))
		if err != nil {
			return nil, err
		}
		if list.ResourceVersion != version {
			return nil, fmt.Errorf("a page of the list at resourceVersion %s is of %q", version, list.ResourceVersion)
		}
		for _, o := range list.Items {
			object, err := s.decode(o)
			if err != nil {
				return nil, err
			}
			if s.keeps(object) {
				objects = append(objects, object)
			}
		}
		if list.Continue == "" {
			return objects, nil
		}
		opts = metav1.ListOptions{Limit: pastPage, Continue: list.Continue}
	}
}
