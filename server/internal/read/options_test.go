package read

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
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
			sel, err := scope.parse(&opts, validate)
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

// TestWatchOptionsAgainstEachOther: a refusal has a cause for each mistake, in Kubernetes' order.
func TestWatchOptionsAgainstEachOther(t *testing.T) {
	const notOlder, exact = metav1.ResourceVersionMatchNotOlderThan, metav1.ResourceVersionMatchExact
	const needs, only, wrong, pages = "sendInitialEvents requires", "unless sendInitialEvents is provided", "Unsupported value", "when continue is provided"
	for _, test := range []struct {
		opts metav1.ListOptions
		want []string
	}{
		{metav1.ListOptions{}, nil},
		{metav1.ListOptions{ResourceVersion: "5", Continue: "x"}, nil},
		{metav1.ListOptions{SendInitialEvents: new(false), ResourceVersionMatch: notOlder}, nil},
		{metav1.ListOptions{SendInitialEvents: new(true)}, []string{needs}},
		{metav1.ListOptions{SendInitialEvents: new(true), Continue: "x"}, []string{needs}},
		{metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: exact}, []string{needs, wrong}},
		{metav1.ListOptions{ResourceVersionMatch: notOlder}, []string{only}},
		{metav1.ListOptions{ResourceVersionMatch: exact, Continue: "x"}, []string{only, wrong, pages}},
		// It begins with the state, as if it asked for that.
		{metav1.ListOptions{Continue: "x"}, []string{pages}},
		{metav1.ListOptions{ResourceVersion: "0", Continue: "x"}, []string{pages}},
	} {
		var causes []metav1.StatusCause
		if err := validateWatch(&test.opts); err != nil {
			causes = status.Of(err).Details.Causes
		}
		if len(causes) != len(test.want) {
			t.Errorf("%+v: %v, want %q", test.opts, causes, test.want)
			continue
		}
		for i, cause := range causes {
			if !strings.Contains(cause.Message, test.want[i]) {
				t.Errorf("%+v: cause %d is %q, want %q", test.opts, i, cause.Message, test.want[i])
			}
		}
	}
}

// TestSelectorsAreRefusedInKubernetesWords, and after the options that do not go together.
func TestSelectorsAreRefusedInKubernetesWords(t *testing.T) {
	f := newFixture(t)
	pods, plain := Scope{Resource: f.pods}, Scope{Resource: &resource.Resource{}}
	for _, test := range []struct {
		scope Scope
		opts  metav1.ListOptions
		want  string
	}{
		{pods, metav1.ListOptions{LabelSelector: "a in ("}, "unable to parse requirement: "},
		{pods, metav1.ListOptions{FieldSelector: "a"}, "invalid selector: 'a'; can't understand 'a'"},
		{pods, metav1.ListOptions{FieldSelector: "a=b"}, "field label not supported: a"},
		{plain, metav1.ListOptions{FieldSelector: "a=b"}, `"a" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{pods, metav1.ListOptions{FieldSelector: "a=b", ResourceVersionMatch: "Exact"}, "resourceVersionMatch is forbidden unless"},
		{Scope{Resource: f.pods, Name: "n"}, metav1.ListOptions{FieldSelector: "metadata.name=m"}, "fieldSelector metadata.name doesn't match requested name"},
		{Scope{Resource: f.pods, Name: "n"}, metav1.ListOptions{FieldSelector: "metadata.namespace=m"}, "fieldSelector metadata.name doesn't match requested name"},
	} {
		if _, err := test.scope.parse(&test.opts, validateList); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %s", test.opts, err, test.want)
		}
	}
	if _, err := (Scope{Resource: f.pods, Name: "n"}).parse(&metav1.ListOptions{FieldSelector: "metadata.name=n,metadata.namespace=m"}, validateList); err != nil {
		t.Error(err)
	}
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
