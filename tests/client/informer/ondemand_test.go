package informer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/informer/ondemand"
	"github.com/levelwire/levelwire/levelwiretest"
)

// gets counts reads of single config maps.
type gets struct {
	next  http.RoundTripper
	count atomic.Int64
}

func (g *gets) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/configmaps/") {
		g.count.Add(1)
	}
	return g.next.RoundTrip(r)
}

func TestWholeObjectsOnDemand(t *testing.T) {
	ctx, counted := bounded(t), &gets{}
	c := levelwiretest.Start(t).Client(client.Options{WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	}})
	maps := client.For[*corev1.ConfigMap](c).Namespace("default")
	for n := range 4 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", n)}, Data: map[string]string{"k": "1"}}
		if _, err := maps.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	metadata := informer.Metadata(f, corev1.SchemeGroupVersion.WithResource("configmaps"), informer.ListOptions{})
	f.Start(ctx)
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := ondemand.New(metadata, client.For[*corev1.ConfigMap](c), ondemand.Options{MaxObjects: 2, MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	get := func(name, want string, requests int64) {
		t.Helper()
		before := counted.count.Load()
		cm, err := r.Get(ctx, "default", name)
		if err != nil || cm.Data["k"] != want {
			t.Errorf("%s: %v, %v", name, cm, err)
		}
		if n := counted.count.Load() - before; n != requests {
			t.Errorf("%s: %d requests, want %d", name, n, requests)
		}
	}
	get("m0", "1", 1)
	get("m0", "1", 0)
	changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m0"}, Data: map[string]string{"k": "2"}}
	changed, err = maps.Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := metadata.WaitForResourceVersion(ctx, changed.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	get("m0", "2", 1) // the informer knows that there is a newer state
	get("m0", "2", 0)
	for _, name := range []string{"m1", "m2", "m3"} {
		get(name, "1", 1)
	}
	if r.Len() != 2 {
		t.Errorf("%d objects are kept", r.Len())
	}
	get("m0", "2", 1) // it had to go
	before := counted.count.Load()
	if _, err := r.Get(ctx, "default", "none"); !apierrors.IsNotFound(err) || counted.count.Load() != before {
		t.Errorf("an object that does not exist: %v, %d requests", err, counted.count.Load()-before)
	}
	var group sync.WaitGroup
	before = counted.count.Load()
	for range 8 {
		group.Go(func() {
			if _, err := r.Get(ctx, "default", "m1"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := counted.count.Load() - before; n != 1 {
		t.Errorf("eight calls made %d requests", n)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Get(canceled, "default", "m2"); err == nil {
		t.Error("a read with a context that has ended returned")
	}
}

// What the informer does not have may exist outside of what it selects.
func TestOndemandOutsideOfTheSelection(t *testing.T) {
	ctx, counted := bounded(t), &gets{}
	c := levelwiretest.Start(t).Client(client.Options{WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	}})
	for namespace, labels := range map[string]map[string]string{"default": {"app": "web"}, "kube-system": nil} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Labels: labels}}
		if _, err := client.For[*corev1.ConfigMap](c).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	for _, test := range []struct {
		opts              informer.ListOptions
		namespace, name   string
		want              string // what the error says; "": none
		requests, perRead int64
	}{
		{informer.ListOptions{}, "", "a", "no namespace is given", 0, 0},
		{informer.ListOptions{}, "default", "", "name is empty", 0, 0},
		{informer.ListOptions{}, "default", "b", "not found", 0, 0},
		{informer.ListOptions{}, "default", "a", "", 1, 0},
		{informer.ListOptions{Namespace: "default"}, "kube-system", "a", "", 1, 1},
		{informer.ListOptions{Namespace: "default"}, "kube-system", "b", "not found", 1, 1},
		{informer.ListOptions{Namespace: "default"}, "default", "b", "not found", 0, 0},
		{informer.ListOptions{Namespaces: []string{"default", "other"}}, "kube-system", "a", "", 1, 1},
		{informer.ListOptions{Namespaces: []string{"default", "other"}}, "default", "b", "not found", 0, 0},
		{informer.ListOptions{LabelSelector: "app=web"}, "kube-system", "a", "", 1, 1},
		{informer.ListOptions{LabelSelector: "app=web"}, "default", "a", "", 1, 0},
		{informer.ListOptions{FieldSelector: "metadata.name=b"}, "default", "a", "", 1, 1},
	} {
		metadata := informer.Metadata(f, corev1.SchemeGroupVersion.WithResource("configmaps"), test.opts)
		f.Start(ctx)
		if err := f.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		r, err := ondemand.New(metadata, client.For[*corev1.ConfigMap](c), ondemand.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range []int64{test.requests, test.perRead} {
			before := counted.count.Load()
			_, err := r.Get(ctx, test.namespace, test.name)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v, read %d: %v", test, n, err)
			}
			if got := counted.count.Load() - before; got != want {
				t.Errorf("%+v, read %d: %d requests", test, n, got)
			}
		}
	}
}

func TestOndemandWithAnInformerThatHasStopped(t *testing.T) {
	ctx := bounded(t)
	c := levelwiretest.Start(t).Client(client.Options{})
	maps := client.For[*corev1.ConfigMap](c).Namespace("default")
	write := func(name, value string) {
		t.Helper()
		if _, _, err := maps.CreateOrUpdate(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{"k": value}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	metadata := informer.Metadata(f, corev1.SchemeGroupVersion.WithResource("configmaps"), informer.ListOptions{})
	r, err := ondemand.New(metadata, client.For[*corev1.ConfigMap](c), ondemand.Options{MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	write("old", "1")
	f.Start(ctx)
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	if cm, err := r.Get(ctx, "default", "old"); err != nil || cm.Data["k"] != "1" {
		t.Fatalf("before: %v, %v", cm, err)
	}
	f.Remove(metadata)
	write("old", "2")
	write("new", "2")
	for _, name := range []string{"old", "new"} {
		if cm, err := r.Get(ctx, "default", name); err != nil || cm.Data["k"] != "2" {
			t.Errorf("%s: %v, %v", name, cm, err)
		}
	}
}

func TestOndemandOptionsAreChecked(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{})
	metadata := informer.Metadata(informer.NewFactory(c, informer.Options{}), corev1.SchemeGroupVersion.WithResource("secrets"), informer.ListOptions{})
	for _, err := range []error{
		second(ondemand.New(nil, client.For[*corev1.Secret](c), ondemand.Options{})),
		second(ondemand.New(metadata, client.For[*corev1.ConfigMap](c), ondemand.Options{})),
		second(ondemand.New(metadata, client.For[*corev1.Secret](c), ondemand.Options{MaxAge: -1})),
		second(ondemand.New(metadata, client.For[*corev1.Secret](c), ondemand.Options{MaxAge: 60})), // no unit
	} {
		if err == nil {
			t.Error("accepted")
		}
	}
}

// Where the scheme does not know the scope, the informer's objects show it.
func TestOndemandInTheWrongPlace(t *testing.T) {
	ctx, c := bounded(t), levelwiretest.Start(t).Client(client.Options{})
	define(ctx, t, c, "w")
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	for _, test := range []struct {
		selector, namespace, name string
		wrong                     bool
	}{
		{"", "", "w", true}, {"", "default", "other", false}, {"metadata.name=none", "", "w", true}, {"metadata.name=none", "default", "other", false},
	} {
		metadata := informer.Metadata(f, widgets, informer.ListOptions{FieldSelector: test.selector})
		r, err := ondemand.New(metadata, client.Dynamic(c, widgets), ondemand.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f.Start(ctx)
		if err := f.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		_, err = r.Get(ctx, test.namespace, test.name)
		var wrong *client.ScopeError
		if errors.As(err, &wrong) != test.wrong || apierrors.IsNotFound(err) == test.wrong {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
