package informer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/diskcache"
	"github.com/levelwire/levelwire/client/reflector"
)

// life is one process with an informer that keeps its pods on disk.
type life struct {
	*SharedInformer[*corev1.Pod]
	record *record
	log    *bytes.Buffer
	stop   func()
}

// begin starts a life; change, unless nil, changes its options.
func begin(t *testing.T, s *script, dir string, change func(*DiskOptions)) *life {
	t.Helper()
	opts := DiskOptions{Directory: dir, Identify: func(context.Context) (string, error) { return "one", nil }}
	if change != nil {
		change(&opts)
	}
	l := &life{record: &record{}, log: &bytes.Buffer{}}
	logger := slog.New(slog.NewTextHandler(l.log, nil))
	l.SharedInformer = New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true, Logger: logger})
	if err := l.KeepOnDisk(opts); err != nil {
		t.Fatal(err)
	}
	add(t, l.SharedInformer, l.record, HandlerOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	l.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	synctest.Wait()
	return l
}

// expectUnordered is for what has no order: the objects of a list.
func (r *record) expectUnordered(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	got := r.take()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// oneLife leaves a file with pods a and b, of versions 1 and 2.
func oneLife(t *testing.T, dir string) *script {
	t.Helper()
	s := newScript()
	s.set("a", 1, nil)
	s.set("b", 2, nil)
	l := begin(t, s, dir, nil)
	l.stop()
	if stats := l.Stats().Disk; stats.Saves != 1 || s.lists != 1 {
		t.Fatalf("after the first life: %d lists, %+v", s.lists, stats)
	}
	return s
}

func TestRestartResumesWithoutAList(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := oneLife(t, dir)
		s.set("a", 1, map[string]string{"changed": "yes"})
		s.remove("b")
		s.set("c", 3, nil)
		s.setDown(true)
		l := begin(t, s, dir, nil)
		defer l.stop()
		// The server does not answer; reads are served.
		l.record.expectUnordered(t, "+a1!", "+b2!")
		if pod, ok := l.Lister().Get("ns", "a"); !ok || pod.UID != "1" {
			t.Errorf("a: %v, %v", pod, ok)
		}
		if f := l.Freshness(); !f.Restored || f.Synced || f.Version != "2" {
			t.Errorf("freshness %+v", f)
		}
		if err := l.Healthy(time.Hour); err == nil || !strings.Contains(err.Error(), "disk") {
			t.Errorf("healthy: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if f := l.Freshness(); f.Age < 10*time.Minute {
			t.Errorf("a view of ten minutes ago is %v old", f.Age)
		}
		s.setDown(false)
		time.Sleep(time.Minute) // the reflector may be waiting between attempts
		l.record.expectUnordered(t, "*a1>3", "-b4", "+c5")
		if f := l.Freshness(); f.Restored || !f.Synced || f.Version != "5" || f.Age > time.Minute {
			t.Errorf("freshness %+v", f)
		}
		if err := l.Healthy(time.Hour); err != nil {
			t.Error(err)
		}
		if s.listCount() != 1 || l.Stats().Reflector.ListCount() != 0 {
			t.Errorf("%d lists, want only that of the first life", s.listCount())
		}
	})
}

// A server that has opened a watch and says nothing may still be about to say
// that it no longer has the version.
func TestSilenceConfirmsNoRestoredState(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := oneLife(t, dir)
		l := begin(t, s, dir, nil)
		defer l.stop()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if l.HasSynced() || !l.Freshness().Restored {
			t.Errorf("after silence: %+v", l.Freshness())
		}
		s.bookmark()
		synctest.Wait()
		if !l.HasSynced() || l.Freshness().Restored {
			t.Errorf("after a bookmark: %+v", l.Freshness())
		}
		l.record.expectUnordered(t, "+a1!", "+b2!")
		s.set("c", 3, nil)
		l.record.expect(t, "+c4")
	})
}

// The end of the first watch confirms only if it is the one that was asked for.
func TestRestoredStateIsConfirmedByAWatchThatEndsInTime(t *testing.T) {
	for lasted, want := range map[time.Duration]bool{confirmingTimeout: true, confirmingTimeout / 2: false} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s := oneLife(t, dir)
			l := begin(t, s, dir, nil)
			defer l.stop()
			time.Sleep(lasted)
			s.setDown(true)
			s.endWatches()
			synctest.Wait()
			if f := l.Freshness(); f.Synced != want || f.Restored == want {
				t.Errorf("a watch that ended after %v: %+v", lasted, f)
			}
			s.setDown(false)
		})
	}
}

func TestExpiredResourceVersionIsFollowedByDifferences(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := oneLife(t, dir)
		s.set("a", 1, map[string]string{"changed": "yes"})
		s.remove("b")
		s.set("c", 3, nil)
		s.forget()
		s.setDown(true)
		l := begin(t, s, dir, nil)
		defer l.stop()
		l.record.expectUnordered(t, "+a1!", "+b2!")
		s.setDown(false)
		time.Sleep(time.Minute)
		l.record.expectUnordered(t, "*a1>3", "-b2?", "+c5!")
		if n := l.Stats().Reflector.Lists[reflector.ListExpired]; n != 1 || !l.HasSynced() || l.Freshness().Restored {
			t.Errorf("%d lists of expired versions, %+v", n, l.Freshness())
		}
	})
}

func TestFileThatCannotBeUsedIsFollowedByAList(t *testing.T) {
	other := func(context.Context) (string, error) { return "another", nil }
	silent := func(context.Context) (string, error) { return "", nil }
	tests := map[string]struct {
		damage func(data []byte) []byte
		change func(*DiskOptions)
		reason diskcache.Reason
		log    string
	}{
		"corrupt":           {damage: func(data []byte) []byte { data[len(data)-40] ^= 1; return data }, reason: diskcache.Corrupt, log: "checksum"},
		"truncated":         {damage: func(data []byte) []byte { return data[:len(data)-1] }, reason: diskcache.Truncated, log: "left"},
		"not ours":          {damage: func([]byte) []byte { return []byte("#!/bin/sh\nexit 0 # and so on\n") }, reason: diskcache.Foreign, log: "begin"},
		"newer":             {damage: func(data []byte) []byte { data[8]++; return data }, reason: diskcache.Newer, log: "format"},
		"another cluster":   {change: func(o *DiskOptions) { o.Identify = other }, reason: diskcache.Foreign, log: "cluster one"},
		"unknown cluster":   {change: func(o *DiskOptions) { o.Identify = silent }, reason: diskcache.Foreign, log: "identity is empty"},
		"other fingerprint": {change: func(o *DiskOptions) { o.Fingerprint = "2" }, reason: diskcache.Foreign, log: "encoding"},
		"too large":         {change: func(o *DiskOptions) { o.Limits.ObjectBytes = 1 }, reason: diskcache.TooLarge, log: "limit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := oneLife(t, dir)
				if test.damage != nil {
					damageFile(t, dir, test.damage)
				}
				l := begin(t, s, dir, test.change)
				l.record.expectUnordered(t, "+a1!", "+b2!")
				if s.listCount() != 2 || !l.HasSynced() {
					t.Errorf("%d lists, want one more", s.listCount())
				}
				stats := l.Stats().Disk
				if stats.Refused == nil || stats.Refused.Reason != test.reason || stats.Restored != 0 {
					t.Errorf("refused: %v, want %q", stats.Refused, test.reason)
				}
				l.stop()
				if log := l.log.String(); !strings.Contains(log, "list follows") || !strings.Contains(log, test.log) {
					t.Errorf("logged:\n%s", log)
				}
				if test.change != nil {
					return
				}
				// The new file is sound.
				next := begin(t, s, dir, nil)
				defer next.stop()
				if next.Stats().Disk.Restored != 2 {
					t.Errorf("after the repair: %+v", next.Stats().Disk)
				}
			})
		})
	}
}

func damageFile(t *testing.T, dir string, damage func([]byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.cache"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], damage(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStaleReadsWhileTheClusterIsUnknown(t *testing.T) {
	for name, cluster := range map[string]string{"the same": "one", "another": "two"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := oneLife(t, dir)
				s.remove("b")
				var reachable atomic.Bool
				l := begin(t, s, dir, func(o *DiskOptions) {
					o.Identify = func(context.Context) (string, error) {
						if !reachable.Load() {
							return "", errors.New("connection refused")
						}
						return cluster, nil
					}
				})
				defer l.stop()
				time.Sleep(identityPatience)
				l.record.expectUnordered(t, "+a1!", "+b2!")
				if f := l.Freshness(); !f.Restored || f.Synced {
					t.Errorf("freshness %+v", f)
				}
				reachable.Store(true)
				time.Sleep(time.Minute)
				if cluster == "one" {
					l.record.expect(t, "-b3")
				} else {
					l.record.expect(t, "-b2?")
				}
				if resumed := s.listCount() == 1; resumed != (cluster == "one") || !l.HasSynced() {
					t.Errorf("%d lists", s.listCount())
				}
			})
		})
	}
}

func TestChangesAreSavedAtIntervalsAndResourceVersionsNoted(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		l := begin(t, s, dir, func(o *DiskOptions) { o.Interval = time.Minute })
		defer l.stop()
		expect := func(saves, advances int64) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if stats := l.Stats().Disk; stats.Saves != saves || stats.Advances != advances || stats.Failures != 0 {
				t.Errorf("%+v, want %d saves and %d notes", stats, saves, advances)
			}
		}
		expect(1, 0) // after the list
		s.set("b", 2, nil)
		expect(2, 0)
		s.bookmark()
		expect(2, 1)
		expect(2, 1) // nothing has happened
		// A crash: another life with what the file holds at this moment.
		next := begin(t, s, dir, nil)
		if stats := next.Stats(); stats.Disk.Restored != 2 || next.LastSyncResourceVersion() != "3" {
			t.Errorf("restored %+v at version %s", stats.Disk, next.LastSyncResourceVersion())
		}
		next.stop()
	})
}

func TestIntervalNegativeSavesAtTheStopOnly(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		l := begin(t, s, dir, func(o *DiskOptions) { o.Interval = -1 })
		s.set("a", 1, nil)
		time.Sleep(time.Hour)
		if stats := l.Stats().Disk; stats.Saves > 1 {
			t.Errorf("%+v", stats)
		}
		l.stop()
		next := begin(t, s, dir, nil)
		defer next.stop()
		next.record.expect(t, "+a2!")
	})
}

func TestADirectoryThatIsGoneCostsNothingButTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		l := begin(t, s, dir, nil)
		l.record.expect(t, "+a1!")
		l.stop()
		if stats := l.Stats().Disk; stats.Failures == 0 || !strings.Contains(l.log.String(), "could not be written") {
			t.Errorf("%+v\n%s", stats, l.log)
		}
	})
}

func TestDiskOptionsAreChecked(t *testing.T) {
	i := New[*corev1.Pod]("pods", newScript(), reflector.Options{})
	if err := i.KeepOnDisk(DiskOptions{}); err == nil || !strings.Contains(err.Error(), "Directory") {
		t.Errorf("no directory: %v", err)
	}
	if err := i.KeepOnDisk(DiskOptions{Directory: "x"}); err == nil || !strings.Contains(err.Error(), "Identify") {
		t.Errorf("no identity: %v", err)
	}
}

// What one user may see is not kept for the next one, who may have other rights, or groups: a watch
// from the version of the file would not take away what this user may not see.
func TestWhatAUserMaySeeIsNotKeptOnDisk(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	factory := NewFactory(c, Options{Disk: DiskOptions{Directory: t.TempDir()}})
	if err := For[*corev1.Pod](factory, ListOptions{Visible: true}).Err(); err == nil || !strings.Contains(err.Error(), "Visible exclude each other") {
		t.Errorf("got %v", err)
	}
	if err := For[*corev1.Pod](factory, ListOptions{}).Err(); err != nil {
		t.Errorf("of all objects: %v", err)
	}
	without := For[*corev1.Pod](NewFactory(c, Options{}), ListOptions{Visible: true})
	if err := without.KeepOnDisk(DiskOptions{Directory: t.TempDir(), Identify: func(context.Context) (string, error) { return "c", nil }}); err == nil {
		t.Error("by KeepOnDisk: no error")
	}
}

func TestFileNamesAreSafeAndDifferent(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range [][4]string{
		{"", "apps/v1/deployments", "", "*v1.Deployment"},
		{"s", "apps/v1/deployments", "", "*v1.Deployment"},
		{"", "apps/v1/deployments", "labels a in (../../b)", "*v1.Deployment"},
		{"", "apps/v1/deployments", "", "*unstructured.Unstructured"},
		{"", "../../etc/passwd", "", "*v1.Deployment"},
		{"", strings.Repeat("x", 500), "", "*v1.Deployment"},
	} {
		name := fileName(of[0], of[1], of[2], of[3])
		if seen[name] || filepath.Base(name) != name || len(name) > 200 || strings.HasPrefix(name, ".") {
			t.Errorf("file name %q of %q", name, of)
		}
		seen[name] = true
	}
}

func TestCodecsKeepWhatTheServerSent(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "7", Labels: map[string]string{"k": "v"},
		CreationTimestamp: metav1.Unix(1_700_000_000, 0)}
	roundTrip(t, "protobuf ", &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}})
	roundTrip(t, "json ", &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, ObjectMeta: meta})
	roundTrip(t, "json ", &unstructured.Unstructured{Object: map[string]any{
		"kind": "Widget", "apiVersion": "x/v1", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"exact": int64(1) << 62, "share": 0.5, "list": []any{"<", nil, true}}}})
}

// What is decoded from a file must be what was decoded from the server, which matches
// field names by case.
func TestCodecsMatchFieldNamesByCase(t *testing.T) {
	c, err := newCodec[*metav1.PartialObjectMetadata]()
	if err != nil {
		t.Fatal(err)
	}
	obj, err := c.decode([]byte(`{"metadata":{"name":"a","NAME":"b"},"METADATA":{"namespace":"other"}}`))
	if err != nil || obj.Name != "a" || obj.Namespace != "" {
		t.Errorf("decoded %s/%s, %v", obj.Namespace, obj.Name, err)
	}
}

func roundTrip[T client.Object](t *testing.T, encoding string, obj T) {
	t.Helper()
	c, err := newCodec[T]()
	if err != nil || !strings.HasPrefix(c.name, encoding) {
		t.Fatalf("codec %q, %v; want %s", c.name, err, encoding)
	}
	data, err := c.append([]byte("before"), obj)
	if err != nil || !bytes.HasPrefix(data, []byte("before")) {
		t.Fatalf("%T: %q, %v", obj, data, err)
	}
	back, err := c.decoder()(data[len("before"):])
	if err != nil || !reflect.DeepEqual(back, obj) {
		t.Errorf("%T came back as %+v, %v; want %+v", obj, back, err, obj)
	}
	if _, err := c.decoder()([]byte{0xff, 0xff, 0xff}); err == nil {
		t.Errorf("%T: rubbish was decoded", obj)
	}
}

func TestShapeChangesWithTheTypeOnly(t *testing.T) {
	type inner struct {
		A int `json:"a"`
	}
	type renamed struct {
		A int `json:"b"`
	}
	type list struct{ Next *list } // recursive types have a shape, too
	of := func(v any) string { return shape(reflect.TypeOf(v)) }
	if of(struct{ X inner }{}) == of(struct{ X renamed }{}) {
		t.Error("another tag deep within is not another shape")
	}
	if first, again := of(corev1.Pod{}), of(corev1.Pod{}); first != again || of(list{}) == of(inner{}) {
		t.Error("shapes do not differ where types do")
	}
}

// Two servers may share a directory: neither looks at the other's file.
func TestServersHaveFilesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := oneLife(t, dir)
		l := begin(t, s, dir, func(o *DiskOptions) { o.Server = "other" })
		if d := l.Stats().Disk; d.Restored != 0 || d.Refused != nil {
			t.Errorf("the other server: %+v", d)
		}
		l.stop()
		l = begin(t, s, dir, nil)
		defer l.stop()
		if d := l.Stats().Disk; d.Restored != 2 {
			t.Errorf("the first server: %+v", d)
		}
	})
}
