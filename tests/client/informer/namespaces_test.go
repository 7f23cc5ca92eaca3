package informer_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/levelwiretest"
)

// testTimeout is how long anything may take before a test fails.
const testTimeout = 3 * time.Minute

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// mine labels the test's objects; the server makes others.
func mine(meta metav1.ObjectMeta) metav1.ObjectMeta {
	meta.Labels = map[string]string{"mine": "yes"}
	return meta
}

// namespaces makes namespaces, each with a ConfigMap of its name.
func namespaces(ctx context.Context, t *testing.T, c *client.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		meta := metav1.ObjectMeta{Name: name}
		if _, err := client.For[*corev1.Namespace](c).Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.For[*corev1.ConfigMap](c).Namespace(name).Create(ctx, &corev1.ConfigMap{ObjectMeta: mine(meta)}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func keys(configMaps []*corev1.ConfigMap) []string {
	var keys []string
	for _, cm := range configMaps {
		keys = append(keys, cm.Namespace+"/"+cm.Name)
	}
	slices.Sort(keys)
	return keys
}

func TestSeveralNamespacesAreOneInformer(t *testing.T) {
	ctx, c := bounded(t), levelwiretest.Start(t).Client(client.Options{})
	namespaces(ctx, t, c, "a", "ab", "other")
	f := informer.NewFactory(c, informer.Options{ConsistencyCheckInterval: time.Second})
	defer f.Shutdown()
	configMaps := informer.For[*corev1.ConfigMap](f, informer.ListOptions{Namespaces: []string{"ab", "a", "ab"}, LabelSelector: "mine"})
	if same := informer.For[*corev1.ConfigMap](f, informer.ListOptions{Namespaces: []string{"a", "ab"}, LabelSelector: "mine"}); same != configMaps {
		t.Error("order and repetitions make another informer")
	}
	if name := configMaps.Name(); name != "configmaps (namespaces a ab, labels mine)" {
		t.Errorf("name %q", name)
	}
	var mu sync.Mutex
	var calls []string
	registration, err := configMaps.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{
		Add: func(cm *corev1.ConfigMap, initial bool) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, fmt.Sprintf("%s %t", cm.Namespace, initial))
		},
	}, informer.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.Start(ctx)
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	<-registration.Synced()
	mu.Lock()
	slices.Sort(calls)
	if !slices.Equal(calls, []string{"a true", "ab true"}) {
		t.Errorf("got %q", calls)
	}
	mu.Unlock()
	if got := keys(configMaps.Lister().List("", nil)); !slices.Equal(got, []string{"a/a", "ab/ab"}) {
		t.Errorf("holds %v", got)
	}

	// A write to either is read, and the version is that which both have
	// reached: it comes with a write to each.
	var last *corev1.ConfigMap
	for _, namespace := range []string{"ab", "a", "ab"} {
		last, err = client.For[*corev1.ConfigMap](c).Namespace(namespace).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: mine(metav1.ObjectMeta{GenerateName: "n-"})}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.For[*corev1.ConfigMap](c).Namespace("a").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: mine(metav1.ObjectMeta{GenerateName: "n-"})}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := configMaps.WaitForResourceVersion(ctx, last.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	if _, ok := configMaps.Lister().Get("ab", last.Name); !ok {
		t.Error("the version of a write was reached, but not the write")
	}
	if s := configMaps.Stats().Reflector; s.StreamingLists != 2 || s.Watches != 2 {
		t.Errorf("%+v", s)
	}
	if err := configMaps.Healthy(time.Minute); err != nil {
		t.Error(err)
	}
	// The digest is that of both namespaces, and finds nothing to mend.
	for configMaps.Stats().ConsistencyCheck.Rounds == 0 && ctx.Err() == nil {
		if _, err := client.For[*corev1.ConfigMap](c).Namespace("a").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: mine(metav1.ObjectMeta{GenerateName: "n-"})}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.For[*corev1.ConfigMap](c).Namespace("ab").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: mine(metav1.ObjectMeta{GenerateName: "n-"})}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if s := configMaps.Stats().ConsistencyCheck; s.Missing+s.Changed+s.Extra != 0 || s.Rounds == 0 {
		t.Errorf("%+v", s)
	}
}

func TestModifierChangesWhatIsAskedFor(t *testing.T) {
	ctx, c := bounded(t), levelwiretest.Start(t).Client(client.Options{})
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	modified := informer.For[*corev1.Namespace](f, informer.ListOptions{
		Modifier: informer.ListModifier{Name: "default only", Modify: func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=default" }}})
	all := informer.For[*corev1.Namespace](f, informer.ListOptions{})
	f.Start(ctx)
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	if modified.Lister().Len() != 1 || all.Lister().Len() != 4 {
		t.Errorf("%d and %d namespaces", modified.Lister().Len(), all.Lister().Len())
	}
	if modified.Name() != "namespaces (modifier default only)" {
		t.Errorf("name %q", modified.Name())
	}
}

// An error in an informer's options is known when it is made, and every call
// that waits for the informer returns it.
func TestOptionsThatCannotBeUsedAreNamed(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{})
	for want, opts := range map[string]struct {
		factory informer.Options
		list    informer.ListOptions
	}{
		"ListOptions.Namespaces exclude each other": {list: informer.ListOptions{Namespace: "a", Namespaces: []string{"b"}}},
		"ListOptions.Namespaces has an empty name":  {list: informer.ListOptions{Namespaces: []string{""}}},
		"ListOptions.Namespaces is an empty list":   {list: informer.ListOptions{Namespaces: []string{}}},
		"ListOptions.Namespaces: \"a/b\"":           {list: informer.ListOptions{Namespaces: []string{"a/b"}}},
		"ListOptions.LabelSelector":                 {list: informer.ListOptions{LabelSelector: "a=b=c"}},
		"ListOptions.FieldSelector":                 {list: informer.ListOptions{FieldSelector: "a"}},
		"ListOptions.Modifier needs":                {list: informer.ListOptions{Modifier: informer.ListModifier{Modify: func(*metav1.ListOptions) {}}}},
		"ListOptions.Modifier needs both":           {list: informer.ListOptions{Modifier: informer.ListModifier{Name: "x"}}},
		"DiskOptions and ListOptions.Namespaces":    {factory: informer.Options{Disk: informer.DiskOptions{Directory: "d"}}, list: informer.ListOptions{Namespaces: []string{"a", "b"}}},
		"interval of consistency checks":            {factory: informer.Options{ConsistencyCheckInterval: time.Millisecond}},
		"Options.WatchTimeout -1ns":                 {factory: informer.Options{Reflector: negative()}},
		"ListOptions.Namespace: \"a/b\"":            {list: informer.ListOptions{Namespace: "a/b"}},
		"Options.Namespace: \"c/d\"":                {factory: informer.Options{Namespace: "c/d"}},
		"Options.Resync":                            {factory: informer.Options{Resync: 30}},
		"Options.ConsistencyCheckInterval":          {factory: informer.Options{ConsistencyCheckInterval: -1}},
		"DiskOptions.Interval needs":                {factory: informer.Options{Disk: informer.DiskOptions{Interval: time.Minute}}},
		"DiskOptions.Fingerprint needs":             {factory: informer.Options{Disk: informer.DiskOptions{Fingerprint: "2"}}},
		"reflector.Options.ResumeFrom \"5\"":        {factory: informer.Options{Reflector: reflector.Options{ResumeFrom: "5"}}},
		"Options.Reflector.Name":                    {factory: informer.Options{Reflector: reflector.Options{Name: "x"}}},
		"Options.Reflector.Filtered":                {factory: informer.Options{Reflector: reflector.Options{Filtered: true}}},
		"Options.GoneAfter 60ns":                    {factory: informer.Options{Reflector: reflector.Options{GoneAfter: 60}}},
		"DiskOptions.Interval 5ns":                  {factory: informer.Options{Disk: informer.DiskOptions{Directory: "d", Interval: 5}}},
		"Options.Reflector.Logger":                  {factory: informer.Options{Reflector: reflector.Options{Logger: slog.Default()}}},
		"Options.Reflector.OnProgress":              {factory: informer.Options{Reflector: reflector.Options{OnProgress: func(string) {}}}},
		"ListOptions.Modifier \"all\" changes more": {list: informer.ListOptions{Modifier: informer.ListModifier{Name: "all", Modify: func(o *metav1.ListOptions) { o.Limit = 0 }}}},
	} {
		f := informer.NewFactory(c, opts.factory)
		i := informer.For[*corev1.ConfigMap](f, opts.list)
		_, addErr := i.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{}, informer.HandlerOptions{})
		f.Start(t.Context())
		for where, err := range map[string]error{"Err": i.Err(), "AddHandler": addErr, "WaitForSync": f.WaitForSync(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", where, err, want)
			}
		}
		f.Shutdown()
	}
}

func TestFactoryListsItsInformers(t *testing.T) {
	f := informer.NewFactory(levelwiretest.Start(t).Client(client.Options{}), informer.Options{})
	all := informer.ListOptions{}
	informer.For[*corev1.Pod](f, all)
	informer.Metadata(f, corev1.SchemeGroupVersion.WithResource("pods"), all)
	informer.ForResource(f, corev1.SchemeGroupVersion.WithResource("pods"), func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, all)
	var names []string
	for _, i := range f.Informers() {
		names = append(names, i.Name())
	}
	if want := []string{"pods", "pods (metadata)", "pods (v1 as *v1.ConfigMap)"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}
