package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
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
//
// That an upstream lists a past state does not say that it has the changes since: kube-apiserver lists
// from etcd what its watch cache has no history for, and refuses the watch. The state alone is worth
// nothing then, since the reflector lists again. So the relay first tries to watch.

// past is the version of which the first fill is to be.
type past struct {
	mu    sync.Mutex
	from  int64 // the smallest version that a client has; 0: none has any
	begun bool
}

const (
	// pastWait is how long clients may come before the first fill.
	pastWait = 50 * time.Millisecond
	// tryWatchFor is for how many seconds a watch is open at most that is opened to see whether the
	// upstream accepts it.
	tryWatchFor = 1
	// pastPage is the size of a page of the first fill.
	pastPage = 1000
)

// pastMargins are how many revisions before the oldest version are tried, one after the other: other
// clients that come have versions that are not much older. kube-apiserver has history of 100 changes
// of a kind at first.
var pastMargins = []int64{10_000, 1_000, 100, 0}

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

// fillFromPast fills the cache with the state at the version that clients have, or at one a little
// older, and returns the version of that state, from which the reflector resumes. It returns "" if there is
// no such version, or the upstream does not have that state or the changes since: the reflector then lists.
func (s *source) fillFromPast() string {
	s.pause(pastWait)
	from := s.past.begin()
	if from == 0 {
		return ""
	}
	var versions []int64
	for _, margin := range pastMargins {
		versions = append(versions, max(from-margin, 1))
	}
	for _, version := range slices.Compact(versions) {
		text := strconv.FormatInt(version, 10)
		err := s.fillExactly(text)
		if err == nil {
			return text
		}
		s.relay.opts.Logger.Debug("the cache cannot be filled from a past state of the upstream", "resource", s.res.GroupVersionResource(), "version", version, "error", err)
	}
	return ""
}

// fillExactly fills the cache with the state at a version from which the upstream is willing to watch.
func (s *source) fillExactly(version string) error {
	if err := s.tryWatch(version); err != nil {
		return err
	}
	objects, err := s.listExactly(version)
	if err != nil {
		return err
	}
	return s.fill(objects, version)
}

// errWatchEnded reports that the upstream has ended a watch early, which says nothing of its history.
var errWatchEnded = errors.New("the upstream has ended a watch before its time")

// tryWatch returns nil if the upstream accepts a watch from a version. It waits for the first event, or for
// the end of the watch: kube-apiserver begins to answer, and then says by an event that it refuses. If
// it accepts, and nothing has changed, it sends nothing until the end. The watch has no deltas: the
// cache has nothing yet that they could be of.
func (s *source) tryWatch(version string) error {
	ctx, cancel := context.WithTimeout(s.warnings.noting(s.running), questionTimeout)
	defer cancel()
	seconds, asked := int64(tryWatchFor), time.Now()
	w, err := s.endpoint.Watch(ctx, s.ofShard(metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds}))
	if err != nil {
		return err
	}
	defer w.Close()
	switch _, err := w.Next(); {
	case !errors.Is(err, io.EOF):
		return err
	case time.Since(asked) < tryWatchFor*time.Second*9/10: // its clock may be a little faster than this one
		return errWatchEnded
	}
	return nil
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
