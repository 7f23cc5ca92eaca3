package reflector

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// differer is a server that can resume only from the resourceVersions of its
// lists and differences.
type differer struct {
	asked   []string                                                // "watch 5", "list", "difference 5 of 2"
	answers []func() (*client.Difference[*corev1.ConfigMap], error) // of one question for a difference each
	events  []client.WatchEvent[*corev1.ConfigMap]                  // of the first watch, before its resourceVersion expires
	lists   int                                                     // that fail
}

func (d *differer) List(context.Context, metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	d.asked = append(d.asked, "list")
	if d.lists > 0 {
		d.lists--
		return nil, apierrors.NewServiceUnavailable("busy")
	}
	return &client.List[*corev1.ConfigMap]{ListMeta: metav1.ListMeta{ResourceVersion: "90"}, Items: []*corev1.ConfigMap{configMap("listed", "80")}}, nil
}

func (d *differer) Difference(_ context.Context, held []*corev1.ConfigMap, opts metav1.ListOptions) (*client.Difference[*corev1.ConfigMap], error) {
	d.asked = append(d.asked, "difference "+opts.ResourceVersion+" of "+strings.Repeat("o", len(held)))
	answer := d.answers[0]
	d.answers = d.answers[1:]
	return answer()
}

func (d *differer) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	d.asked = append(d.asked, "watch "+opts.ResourceVersion)
	if opts.ResourceVersion < "50" && len(d.events) == 0 {
		return nil, apierrors.NewResourceExpired("gone")
	}
	s := &fixedStream{ctx: ctx, events: d.events}
	d.events = nil
	return s, nil
}

// fixedStream is a stream of a few events that then stays open.
type fixedStream struct {
	ctx    context.Context
	events []client.WatchEvent[*corev1.ConfigMap]
}

func (s *fixedStream) Next() (client.WatchEvent[*corev1.ConfigMap], error) {
	if len(s.events) > 0 {
		ev := s.events[0]
		s.events = s.events[1:]
		return ev, nil
	}
	<-s.ctx.Done()
	return client.WatchEvent[*corev1.ConfigMap]{}, s.ctx.Err()
}

func (*fixedStream) Close() {}

// holder is a store that can say what it holds.
type holder struct {
	mirror
	held []*corev1.ConfigMap
}

func (h *holder) Held() []*corev1.ConfigMap { return slices.Clone(h.held) }

func (h *holder) Merge(dropped, received []*corev1.ConfigMap, version string) error {
	h.held = slices.DeleteFunc(h.held, func(cm *corev1.ConfigMap) bool { return slices.Contains(dropped, cm) })
	return h.Replace(slices.Concat(h.held, received), version)
}

func TestDifferenceBeforeList(t *testing.T) {
	kept, old := configMap("kept", "3"), configMap("old", "4")
	applied := func() (*client.Difference[*corev1.ConfigMap], error) {
		return &client.Difference[*corev1.ConfigMap]{ResourceVersion: "60", Kept: []*corev1.ConfigMap{kept}, Dropped: []*corev1.ConfigMap{old}, Received: []*corev1.ConfigMap{configMap("new", "55")}, Bytes: 123}, nil
	}
	failing := func(err error) func() (*client.Difference[*corev1.ConfigMap], error) {
		return func() (*client.Difference[*corev1.ConfigMap], error) { return nil, err }
	}
	cut, away := failing(io.ErrUnexpectedEOF), failing(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	type answers = []func() (*client.Difference[*corev1.ConfigMap], error)
	const byDifference, byList = "kept:3 new:55", "listed:80"
	for _, test := range []struct {
		name    string
		opts    Options
		answers answers
		empty   bool
		events  []client.WatchEvent[*corev1.ConfigMap]
		lists   int // that fail
		asked   string
		store   string
		results map[DifferenceResult]int64
	}{
		{"applied", Options{}, answers{applied}, false, nil, 0, "watch 5, difference 5 of oo, watch 60", byDifference, map[DifferenceResult]int64{DifferenceApplied: 1}},
		{"not known to the server", Options{}, answers{failing(client.ErrNoDifference)}, false, nil, 0,
			"watch 5, difference 5 of oo, list, watch 90", byList, map[DifferenceResult]int64{DifferenceUnsupported: 1}},
		{"not worth it", Options{}, answers{failing(client.ErrListInstead)}, false, nil, 0,
			"watch 5, difference 5 of oo, list, watch 90", byList, map[DifferenceResult]int64{DifferenceListInstead: 1}},
		{"cut off twice", Options{}, answers{cut, failing(apierrors.NewServiceUnavailable("busy")), applied}, false, nil, 0,
			"watch 5, difference 5 of oo, difference 5 of oo, difference 5 of oo, watch 60", byDifference, map[DifferenceResult]int64{DifferenceFailed: 2, DifferenceApplied: 1}},
		{"cut off again and again", Options{}, answers{cut, cut, cut}, false, nil, 0,
			"watch 5, difference 5 of oo, difference 5 of oo, difference 5 of oo, list, watch 90", byList, map[DifferenceResult]int64{DifferenceFailed: 3}},
		{"the server is away for longer", Options{}, answers{away, away, away, away, applied}, false, nil, 0,
			"watch 5" + strings.Repeat(", difference 5 of oo", 5) + ", watch 60", byDifference, map[DifferenceResult]int64{DifferenceFailed: 4, DifferenceApplied: 1}},
		{"lists fail, too", Options{}, answers{cut, cut, cut, cut, applied}, false, nil, 2,
			"watch 5, difference 5 of oo, difference 5 of oo, difference 5 of oo, list, difference 5 of oo, list, difference 5 of oo, watch 60",
			byDifference, map[DifferenceResult]int64{DifferenceFailed: 4, DifferenceApplied: 1}},
		{"not known to a server whose lists fail", Options{}, answers{failing(client.ErrNoDifference)}, false, nil, 1,
			"watch 5, difference 5 of oo, list, list, watch 90", byList, map[DifferenceResult]int64{DifferenceUnsupported: 1}},
		{"not understood", Options{}, answers{failing(&client.DecodeError{What: "difference", Err: errStore})}, false, nil, 0,
			"watch 5, difference 5 of oo, list, watch 90", byList, map[DifferenceResult]int64{DifferenceFailed: 1}},
		{"from the past", Options{}, answers{func() (*client.Difference[*corev1.ConfigMap], error) {
			return &client.Difference[*corev1.ConfigMap]{ResourceVersion: "4"}, nil
		}}, false, nil, 0, "watch 5, difference 5 of oo, list, watch 90", byList, map[DifferenceResult]int64{DifferenceFailed: 1}},
		{"an object without a name", Options{}, answers{func() (*client.Difference[*corev1.ConfigMap], error) {
			return &client.Difference[*corev1.ConfigMap]{ResourceVersion: "60", Received: []*corev1.ConfigMap{configMap("", "55")}}, nil
		}}, false, nil, 0, "watch 5, difference 5 of oo, list, watch 90", byList, map[DifferenceResult]int64{DifferenceFailed: 1}},
		{"nothing is held", Options{}, nil, true, nil, 0, "watch 5, list, watch 90", byList, nil},
		{"switched off", Options{NoDifferences: true}, nil, false, nil, 0, "watch 5, list, watch 90", byList, nil},
		{"versions went back", Options{}, nil, false, []client.WatchEvent[*corev1.ConfigMap]{{Type: watch.Bookmark, Object: configMap("", "3")}}, 0,
			"watch 5, list, watch 90", byList, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, store := &differer{answers: test.answers, events: test.events, lists: test.lists}, &holder{held: []*corev1.ConfigMap{kept, old}}
				if test.empty {
					store.held = nil
				}
				test.opts.ResumeFrom, test.opts.PagedList = "5", true
				test.opts.Backoff = Backoff{Base: time.Second, Max: time.Second}
				r, err := New(ListerWatcher[*corev1.ConfigMap](server), Store[*corev1.ConfigMap](store), test.opts)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ran := make(chan error, 1)
				go func() { ran <- r.Run(ctx) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				stats := r.Stats()
				cancel()
				if err := <-ran; err != nil {
					t.Error(err)
				}
				if got := strings.Join(server.asked, ", "); got != test.asked {
					t.Errorf("asked for\n %s\nwant\n %s", got, test.asked)
				}
				if got := store.snapshot(); got != "map["+test.store+"]" {
					t.Errorf("store %s, want %s", got, test.store)
				}
				if !maps.Equal(stats.Differences, test.results) {
					t.Errorf("results %v, want %v", stats.Differences, test.results)
				}
				if test.store == byDifference {
					if stats.ListCount() != int64(test.lists) || stats.DifferenceObjects != 1 || stats.DifferenceBytes != 123 || r.LastSyncResourceVersion() != "60" {
						t.Errorf("%+v, version %s", stats, r.LastSyncResourceVersion())
					}
				} else if stats.ListCount() != int64(test.lists+1) || stats.DifferenceObjects != 0 {
					t.Errorf("%+v", stats)
				}
			})
		})
	}
}

func TestStoreThatCannotMergeEndsTheReflector(t *testing.T) {
	store := &holder{held: []*corev1.ConfigMap{configMap("a", "1")}, mirror: mirror{fail: errStore}}
	server := &differer{answers: []func() (*client.Difference[*corev1.ConfigMap], error){func() (*client.Difference[*corev1.ConfigMap], error) {
		return &client.Difference[*corev1.ConfigMap]{ResourceVersion: "60"}, nil
	}}}
	r, err := New(ListerWatcher[*corev1.ConfigMap](server), Store[*corev1.ConfigMap](store), Options{ResumeFrom: "5"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, errStore) {
		t.Errorf("got %v", err)
	}
}
