package read_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cached"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server with a reader. gets and lists count the requests that are
// not an informer's: those that ask for pods while all informers have synced.
type fixture struct {
	ctx     context.Context
	client  *client.Client
	factory *informer.Factory
	reader  *cached.Reader
	reads   atomic.Int64
}

// RequestDone implements client.Observer.
func (f *fixture) RequestDone(info client.RequestInfo) {
	if info.Verb == "get" || info.Verb == "list" {
		f.reads.Add(1)
	}
}

// AttemptDone implements client.Observer.
func (f *fixture) AttemptDone(client.AttemptInfo) {}

func newFixture(t *testing.T, opts cached.Options) *fixture {
	t.Helper()
	f := &fixture{}
	var cancel func()
	f.ctx, cancel = context.WithTimeout(t.Context(), 3*time.Minute)
	f.client = levelwiretest.Start(t).Client(client.Options{Observer: f})
	f.factory = informer.NewFactory(f.client, informer.Options{})
	f.reader = cached.NewReader(f.factory, opts)
	t.Cleanup(func() {
		cancel()
		f.factory.Shutdown()
	})
	return f
}

// start runs the informers; the requests until they have synced do not count.
func (f *fixture) start(t *testing.T) {
	t.Helper()
	f.factory.Start(f.ctx)
	if err := f.factory.WaitForSync(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.reads.Store(0)
}

func (f *fixture) create(t *testing.T, namespace, name string, labels map[string]string) *corev1.ConfigMap {
	t.Helper()
	made, err := client.For[*corev1.ConfigMap](f.client).Create(f.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Data:       map[string]string{"node": labels["node"]},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (f *fixture) wantReads(t *testing.T, want int64, what string) {
	t.Helper()
	if got := f.reads.Swap(0); got != want {
		t.Errorf("%s: %d reads from the server, want %d", what, got, want)
	}
}

// ofServer are the ConfigMaps that every cluster has.
var ofServer = []string{"kube-root-ca.crt", "extension-apiserver-authentication", "kube-apiserver-legacy-service-account-token-tracking"}

// names lists, sorted.
func names(ctx context.Context, t *testing.T, r cached.Resource[*corev1.ConfigMap], opts metav1.ListOptions) string {
	t.Helper()
	list, err := r.List(ctx, opts)
	if err != nil {
		t.Errorf("%+v: %v", opts, err)
		return ""
	}
	return namesOf(list.Items)
}

// namesOf returns the names of what is not of the server, sorted.
func namesOf(maps []*corev1.ConfigMap) string {
	var all []string
	for _, cm := range maps {
		if !slices.Contains(ofServer, cm.Name) {
			all = append(all, cm.Namespace+"/"+cm.Name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func nodeOf(cm *corev1.ConfigMap) string { return cm.Data["node"] }

func TestReadsFromTheCache(t *testing.T) {
	f := newFixture(t, cached.Options{})
	inf := informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{})
	for range 2 { // again is allowed
		if err := cached.Add(f.reader, inf); err != nil {
			t.Fatal(err)
		}
	}
	f.create(t, "default", "a", map[string]string{"app": "x", "node": "n1"})
	f.create(t, "default", "b", map[string]string{"app": "y", "node": "n2"})
	f.create(t, "kube-system", "c", map[string]string{"app": "x", "node": "n1"})
	if err := inf.AddIndexers(cached.FieldIndexers("data.node", nodeOf)); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	maps := cached.For[*corev1.ConfigMap](f.reader)
	check := func() {
		t.Helper()
		for _, test := range []struct{ namespace, labels, fields, want string }{
			{"", "", "", "default/a default/b kube-system/c"},
			{"default", "", "", "default/a default/b"},
			{"", "app=x", "", "default/a kube-system/c"},
			{"", "app in (x,y)", "", "default/a default/b kube-system/c"},
			{"default", "app in (x)", "", "default/a"},
			{"", "app,app!=x", "", "default/b"},
			{"", "", "data.node=n1", "default/a kube-system/c"},
			{"default", "", "data.node=n1", "default/a"},
			{"", "app=x", "data.node=n1,metadata.namespace=kube-system", "kube-system/c"},
			{"", "app", "data.node!=n1", "default/b"},
			{"", "", "metadata.name=b", "default/b"},
			{"default", "", "metadata.name=c", ""},
			{"", "app", "metadata.name!=b,metadata.namespace!=kube-system", "default/a"},
			{"other", "", "", ""},
		} {
			got := names(f.ctx, t, maps.Namespace(test.namespace), metav1.ListOptions{LabelSelector: test.labels, FieldSelector: test.fields, Limit: 1})
			if got != test.want {
				t.Errorf("%+v: got %q", test, got)
			}
		}
	}
	check()
	if err := inf.AddIndexers(cached.LabelIndexers[*corev1.ConfigMap]("app")); err != nil {
		t.Fatal(err)
	}
	check() // the same by the index
	if got, err := maps.Namespace("default").Get(f.ctx, "a", metav1.GetOptions{}); err != nil || got.Name != "a" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := maps.Namespace("default").Get(f.ctx, "missing", metav1.GetOptions{}); !apierrors.IsNotFound(err) || err.Error() != `configmaps "missing" not found` {
		t.Errorf("got %v", err)
	}
	for want, opts := range map[string]metav1.ListOptions{
		`register it with AddIndexers(cached.FieldIndexers("data.other", ...)), or list with Uncached`: {FieldSelector: "data.other=1"},
		"label selector": {LabelSelector: "a in ("},
		"field selector": {FieldSelector: "a"},
	} {
		if _, err := maps.List(f.ctx, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	f.wantReads(t, 0, "from the cache")
	if _, err := maps.Uncached().Namespace("default").Get(f.ctx, "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	f.wantReads(t, 1, "Uncached")
}

// A list that selects less than the informer is served from its cache, however the two
// selectors are written.
func TestNarrowerLabelSelectors(t *testing.T) {
	for _, test := range []struct {
		informer, list string
		cached         bool
	}{
		{"app", "app=x", true},
		{"app", "app in (x,y)", true},
		{"app", "app,app!=x", true},
		{"app", "app!=x", false},
		{"app", "!app", false},
		{"app", "", false},
		{"app", "other=x", false},
		{"app=x", "app in (x)", true},
		{"app=x", "app==x", true},
		{"app=x", "app=x,other=y", true},
		{"app=x", "app=y", false},
		{"app=x", "app", false},
		{"app in (x,y)", "app=x", true},
		{"app in (x,y)", "app in (y,z)", false},
		{"app!=x", "app=y", true},
		{"app!=x", "!app", true},
		{"app!=x", "app notin (x,y)", true},
		{"app!=x", "app", false},
		{"app notin (x,y)", "app!=x", false},
		{"!app", "!app", true},
		{"!app", "app!=x", false},
	} {
		t.Run(test.informer+" "+test.list, func(t *testing.T) {
			f := newFixture(t, cached.Options{})
			inf := informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{LabelSelector: test.informer})
			if err := cached.Add(f.reader, inf); err != nil {
				t.Fatal(err)
			}
			for name, labels := range map[string]map[string]string{"x": {"app": "x"}, "y": {"app": "y"}, "z": {"app": "z"}, "none": nil, "xy": {"app": "x", "other": "y"}} {
				f.create(t, "default", name, labels)
			}
			f.start(t)
			maps, opts := cached.For[*corev1.ConfigMap](f.reader), metav1.ListOptions{LabelSelector: test.list}
			got := names(f.ctx, t, maps, opts)
			want := int64(1)
			if test.cached {
				want = 0
			}
			f.wantReads(t, want, "the list")
			list, err := maps.Uncached().List(f.ctx, opts)
			if err != nil {
				t.Fatal(err)
			}
			if want := namesOf(list.Items); got != want {
				t.Errorf("read %q, the server has %q", got, want)
			}
		})
	}
}

func TestTheRestComesFromTheServer(t *testing.T) {
	f := newFixture(t, cached.Options{})
	f.create(t, "default", "a", map[string]string{"app": "x"})
	f.create(t, "default", "b", map[string]string{"app": "y"})
	f.create(t, "kube-system", "c", map[string]string{"app": "x"})
	if err := cached.Add(f.reader, informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{Namespace: "default", LabelSelector: "app=x"})); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	maps := cached.For[*corev1.ConfigMap](f.reader)
	for _, test := range []struct {
		namespace, name string
		reads           int64
	}{{"default", "a", 0}, {"default", "b", 1}, {"kube-system", "c", 1}} {
		if _, err := maps.Namespace(test.namespace).Get(f.ctx, test.name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		f.wantReads(t, test.reads, test.name)
	}
	for _, test := range []struct {
		namespace, labels, want string
		reads                   int64
	}{
		{"default", "app=x", "default/a", 0},
		{"default", "app=x,other!=1", "default/a", 0},
		{"default", "", "default/a default/b", 1},
		{"default", "app in (x,y)", "default/a default/b", 1},
		{"", "app=x", "default/a kube-system/c", 1},
	} {
		if got := names(f.ctx, t, maps.Namespace(test.namespace), metav1.ListOptions{LabelSelector: test.labels}); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
		f.wantReads(t, test.reads, fmt.Sprint(test))
	}
	// Kinds that are not cached.
	if _, err := cached.For[*corev1.Namespace](f.reader).Get(f.ctx, "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	f.wantReads(t, 1, "a kind that is not cached")
}

func TestCacheOnFirstUse(t *testing.T) {
	f := newFixture(t, cached.Options{Uncached: []schema.GroupResource{{Resource: "secrets"}}})
	f.create(t, "default", "a", nil)
	f.reader.CacheOnFirstUse(f.ctx)
	maps := cached.For[*corev1.ConfigMap](f.reader).Namespace("default")
	for range 3 {
		if _, err := maps.Get(f.ctx, "a", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.wantReads(t, 0, "an informer that lists by a watch")
	if _, err := cached.For[*corev1.Secret](f.reader).Namespace("default").List(f.ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	f.wantReads(t, 1, "an excluded resource")
	if n := len(f.factory.Informers()); n != 1 {
		t.Errorf("%d informers", n)
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if got, err := cached.Metadata(f.reader, gvr).Namespace("default").Get(f.ctx, "a", metav1.GetOptions{}); err != nil || got.Name != "a" {
		t.Errorf("metadata: %v, %v", got, err)
	}
	if got, err := cached.Dynamic(f.reader, gvr).Namespace("default").Get(f.ctx, "a", metav1.GetOptions{}); err != nil || got.GetKind() != "ConfigMap" {
		t.Errorf("dynamic: %v, %v", got, err)
	}
}

func TestFirstUseStartsItsOwnInformerOnly(t *testing.T) {
	f := newFixture(t, cached.Options{})
	pods := informer.For[*corev1.Pod](f.factory, informer.ListOptions{})
	f.reader.CacheOnFirstUse(f.ctx)
	maps := cached.For[*corev1.ConfigMap](f.reader).Namespace("default")
	maps.Record(f.create(t, "default", "a", nil))
	if err := maps.WaitForResourceVersion(f.ctx, "1"); err != nil {
		t.Error(err)
	}
	if n := len(f.factory.Informers()); n != 1 {
		t.Errorf("%d informers without a read", n)
	}
	if _, err := maps.Get(f.ctx, "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.SetTransform(func(pod *corev1.Pod) (*corev1.Pod, error) { return pod, nil }); err != nil {
		t.Errorf("an informer of another kind was started: %v", err)
	}
}

func TestFirstUseAfterShutdown(t *testing.T) {
	f := newFixture(t, cached.Options{})
	f.reader.CacheOnFirstUse(f.ctx)
	f.factory.Shutdown()
	ctx, cancel := context.WithTimeout(f.ctx, 3*time.Minute)
	defer cancel()
	for range 2 {
		if _, err := cached.For[*corev1.ConfigMap](f.reader).List(ctx, metav1.ListOptions{}); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("got %v", err)
		}
	}
}

// What has stopped learns of nothing any more: it would answer as the objects once were.
func TestAnInformerThatHasStopped(t *testing.T) {
	for _, test := range []struct {
		name     string
		stop     func(f *fixture, inf *informer.SharedInformer[*corev1.ConfigMap], cancel func())
		firstUse int64 // reads from the server where informers are made on first use
	}{
		{"by its context", func(_ *fixture, _ *informer.SharedInformer[*corev1.ConfigMap], cancel func()) { cancel() }, 2},
		{"by Remove", func(f *fixture, inf *informer.SharedInformer[*corev1.ConfigMap], _ func()) { f.factory.Remove(inf) }, 0},
		{"by Shutdown", func(f *fixture, _ *informer.SharedInformer[*corev1.ConfigMap], _ func()) { f.factory.Shutdown() }, 2},
	} {
		for _, firstUse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, first use %v", test.name, firstUse), func(t *testing.T) {
				f := newFixture(t, cached.Options{})
				ctx, cancel := context.WithCancel(f.ctx)
				defer cancel()
				f.create(t, "default", "a", nil)
				inf := informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{})
				want := int64(2)
				if firstUse {
					f.reader.CacheOnFirstUse(ctx)
					want = test.firstUse
				} else if err := errors.Join(cached.Add(f.reader, inf), f.factory.StartInformer(ctx, inf)); err != nil {
					t.Fatal(err)
				}
				maps := cached.For[*corev1.ConfigMap](f.reader).Namespace("default")
				if got := names(f.ctx, t, maps, metav1.ListOptions{}); got != "default/a" {
					t.Fatalf("before: %s", got)
				}
				test.stop(f, inf, cancel)
				<-inf.Done()
				f.reads.Store(0)
				written := f.create(t, "default", "b", nil)
				if _, err := maps.Get(f.ctx, "b", metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
				if got := names(f.ctx, t, maps, metav1.ListOptions{}); got != "default/a default/b" {
					t.Errorf("got %s", got)
				}
				maps.Record(written)
				if err := maps.WaitForResourceVersion(f.ctx, written.ResourceVersion); err != nil {
					t.Error(err)
				}
				f.wantReads(t, want, "after the stop")
				if err := cached.Add(f.reader, inf); !errors.Is(err, informer.ErrStopped) {
					t.Errorf("added: %v", err)
				}
			})
		}
	}
}

// A read that waits for an informer which stops gets the server's answer.
func TestAnInformerThatStopsDuringARead(t *testing.T) {
	f := newFixture(t, cached.Options{})
	f.create(t, "default", "a", nil)
	inf := informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{})
	if err := cached.Add(f.reader, inf); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	maps := cached.For[*corev1.ConfigMap](f.reader).Namespace("default")
	errs := make(chan error, 2)
	later := fmt.Sprint(uint64(1) << 62)
	go func() {
		_, err := maps.Get(f.ctx, "a", metav1.GetOptions{ResourceVersion: later})
		errs <- err
	}()
	go func() {
		_, err := maps.List(f.ctx, metav1.ListOptions{ResourceVersion: later})
		errs <- err
	}()
	f.factory.Remove(inf)
	for range 2 { // the server says that there is no such version
		if err := <-errs; err == nil || errors.Is(err, informer.ErrStopped) {
			t.Errorf("got %v", err)
		}
	}
}

func TestReadsAreCopies(t *testing.T) {
	f := newFixture(t, cached.Options{})
	f.create(t, "default", "a", map[string]string{"app": "x"})
	if err := cached.Add(f.reader, informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{})); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	maps := cached.For[*corev1.ConfigMap](f.reader).Namespace("default")
	get := func(r cached.Resource[*corev1.ConfigMap]) *corev1.ConfigMap {
		t.Helper()
		got, err := r.Get(f.ctx, "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	get(maps).Labels["app"] = "changed"
	list, err := maps.List(f.ctx, metav1.ListOptions{LabelSelector: "app"})
	if err != nil || len(list.Items) != 1 || list.ResourceVersion == "" {
		t.Fatalf("got %+v, %v", list, err)
	}
	list.Items[0].Labels["app"] = "changed"
	if got := get(maps).Labels["app"]; got != "x" {
		t.Errorf("the cache was changed: %s", got)
	}
	shared, again, copied := get(maps.Shared()), get(maps.Shared()), get(maps)
	if shared != again || copied == shared {
		t.Error("Shared returns copies, or the other not")
	}
}

func TestReadYourWrites(t *testing.T) {
	f := newFixture(t, cached.Options{})
	if err := cached.Add(f.reader, informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{})); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	maps := cached.For[*corev1.ConfigMap](f.reader).Namespace("default")
	for n := range 50 {
		made := f.create(t, "default", fmt.Sprint("a", n), nil)
		switch n % 3 {
		case 0:
			if _, err := maps.Get(f.ctx, made.Name, metav1.GetOptions{ResourceVersion: made.ResourceVersion}); err != nil {
				t.Fatal(err)
			}
		case 1:
			maps.Record(made)
			if _, err := maps.Get(f.ctx, made.Name, metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
		default:
			if err := maps.WaitForResourceVersion(f.ctx, made.ResourceVersion); err != nil {
				t.Fatal(err)
			}
			if got := names(f.ctx, t, maps, metav1.ListOptions{FieldSelector: "metadata.name=" + made.Name}); got == "" {
				t.Errorf("%s is not in the cache", made.Name)
			}
		}
	}
	f.wantReads(t, 0, "reads of writes")
	short, cancel := context.WithCancelCause(f.ctx)
	cancel(context.DeadlineExceeded)
	if _, err := maps.Get(short, "a0", metav1.GetOptions{ResourceVersion: "999999999"}); err == nil || !strings.Contains(err.Error(), "has not reached resourceVersion 999999999") {
		t.Errorf("a version that does not come: %v", err)
	}
}

// A write that an informer does not select comes with no event: reads do not wait for
// one, and do not show the state that it has replaced.
func TestRecordOutsideOfTheSelection(t *testing.T) {
	f := newFixture(t, cached.Options{})
	if err := cached.Add(f.reader, informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{LabelSelector: "app=web", FieldSelector: "metadata.name!=never"})); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	ctx, cancel := context.WithTimeout(f.ctx, 3*time.Minute)
	defer cancel()
	maps := cached.For[*corev1.ConfigMap](f.reader).Namespace("default")
	web := map[string]string{"app": "web"}
	maps.Record(f.create(t, "default", "web", web))
	maps.Record(f.create(t, "default", "never", web))
	maps.Record(f.create(t, "default", "other", nil))
	if _, err := maps.Get(ctx, "web", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	f.wantReads(t, 0, "an object of the informer")
	for n := range 20 {
		name := fmt.Sprint("leaves", n)
		cm := f.create(t, "default", name, web)
		maps.Record(cm)
		cm.Labels = nil
		cm, err := maps.Uncached().Update(ctx, cm, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		maps.Record(cm)
		if got := names(ctx, t, maps, metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "metadata.name!=never"}); got != "default/web" {
			t.Errorf("after %s has left: %q", name, got)
		}
		f.wantReads(t, 0, "a list of the informer's objects")
		if got, err := maps.Get(ctx, name, metav1.GetOptions{}); err != nil || got.ResourceVersion != cm.ResourceVersion {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		f.wantReads(t, 1, "an object that has left")
	}
}

// A read waits for what was written in its own namespace. The watches of an informer's
// other namespaces may be quiet, and then report that they have come as far after about
// a minute only.
func TestRecordInOneOfSeveralNamespaces(t *testing.T) {
	f := newFixture(t, cached.Options{})
	quiet := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "quiet"}}
	if _, err := client.For[*corev1.Namespace](f.client).Create(f.ctx, quiet, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	inf := informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{Namespaces: []string{"default", "quiet"}})
	if err := cached.Add(f.reader, inf); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	ctx, cancel := context.WithTimeout(f.ctx, 3*time.Minute)
	defer cancel()
	maps := cached.For[*corev1.ConfigMap](f.reader).Namespace("default")
	for n := range 20 {
		made := f.create(t, "default", fmt.Sprint("a", n), nil)
		maps.Record(made)
		if _, err := maps.Get(ctx, made.Name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		made = f.create(t, "default", fmt.Sprint("b", n), nil)
		if _, err := maps.Get(ctx, made.Name, metav1.GetOptions{ResourceVersion: made.ResourceVersion}); err != nil {
			t.Fatal(err)
		}
		made = f.create(t, "default", fmt.Sprint("c", n), nil)
		if err := maps.WaitForResourceVersion(ctx, made.ResourceVersion); err != nil {
			t.Fatal(err)
		}
		if _, ok := inf.Lister().Get("default", made.Name); !ok {
			t.Fatal(made.Name + " is not in the cache")
		}
	}
	f.wantReads(t, 0, "reads of writes")
	if err := inf.WaitForResourceVersionIn(ctx, "elsewhere", "1"); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("a namespace that the informer does not watch: %v", err)
	}
}

func TestWhatCannotBeAdded(t *testing.T) {
	f := newFixture(t, cached.Options{})
	for want, inf := range map[string]*informer.SharedInformer[*corev1.ConfigMap]{
		"is nil":           nil,
		"has a Modifier":   informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{Modifier: informer.ListModifier{Name: "m", Modify: func(*metav1.ListOptions) {}}}),
		"not made by a":    informer.New("own", reflector.Resource(client.For[*corev1.ConfigMap](f.client), nil), reflector.Options{}),
		"exclude each oth": informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{Namespace: "a", Namespaces: []string{"b"}}),
	} {
		if err := cached.Add(f.reader, inf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
