package read

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/status"
)

// FuzzListOptions holds that options are either understood or the client's error,
// whatever they say, and that continue tokens and names cannot break a read.
func FuzzListOptions(f *testing.F) {
	const half = "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
	type seed struct {
		labels, fields, shard, version, match, token string
		limit, seconds                               int64
		initial                                      int8
	}
	for _, s := range []seed{
		{}, {limit: 5, token: "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0"},
		{version: "5", match: "Exact"}, {initial: 1, match: "NotOlderThan"},
		{labels: "a=b,c in (d,e),!f,g>5", fields: "metadata.name=x,spec.nodeName!=y"},
		{shard: half}, {seconds: 99999999999, limit: -1}, {seconds: -5}, {labels: "%"},
	} {
		f.Add(s.labels, s.fields, s.shard, s.version, s.match, s.token, "", s.limit, s.seconds, s.initial)
		f.Add(s.labels, s.fields, s.shard, s.version, s.match, s.token, "x", s.limit, s.seconds, s.initial)
	}
	fx := newFixture(f)
	fx.seed()
	f.Fuzz(func(t *testing.T, labels, fields, shard, version, match, token, name string, limit, seconds int64, initial int8) {
		opts := metav1.ListOptions{
			LabelSelector: labels, FieldSelector: fields, ShardSelector: shard, ResourceVersion: version, Continue: token,
			ResourceVersionMatch: metav1.ResourceVersionMatch(match), Limit: limit, TimeoutSeconds: &seconds,
		}
		if initial != 0 {
			opts.SendInitialEvents = new(initial > 0)
		}
		scope := Scope{Resource: fx.pods, Namespace: "a", Name: name}
		for _, validate := range []func(*metav1.ListOptions) error{validateList, validateWatch} {
			sel, err := scope.parse(&opts)
			if err == nil {
				err = validate(&opts)
			}
			if err == nil {
				_, err = parseResourceVersion(opts.ResourceVersion)
			}
			if err == nil && opts.Continue != "" {
				_, err = decodeContinue(opts.Continue)
			}
			if err != nil {
				if got := status.Of(err); got.Code != 400 && got.Code != 422 {
					t.Fatalf("%+v are answered with %d: %v", opts, got.Code, err)
				}
				continue
			}
			if selection, err := scope.selection(sel); err != nil || selection.Namespace != "a" && selection.Namespace == "" {
				t.Fatalf("%+v select %+v, %v", opts, selection, err)
			}
		}
		if lifetime := fx.reader.watchLifetime(opts.TimeoutSeconds); lifetime <= 0 {
			t.Fatalf("timeoutSeconds=%d means a lifetime of %s", seconds, lifetime)
		}
	})
}

func TestWatchLifetimes(t *testing.T) {
	f := newFixture(t, func(s *setup) { s.config.MinWatchTimeout = time.Hour })
	if got := f.reader.watchLifetime(new(int64(7))); got != 7*time.Second {
		t.Errorf("a watch that asked for 7 s gets %s", got)
	}
	if got := f.reader.watchLifetime(new(int64(-7))); got > time.Second {
		t.Errorf("a watch that asked for -7 s gets %s; Kubernetes ends it at once", got)
	}
	seen := map[time.Duration]bool{}
	for range 100 {
		got := f.reader.watchLifetime(nil)
		if got < time.Hour || got >= 2*time.Hour {
			t.Fatalf("a watch that asked for nothing gets %s", got)
		}
		seen[got] = true
	}
	if len(seen) < 50 {
		t.Errorf("100 watches end at %d different times", len(seen))
	}
}
