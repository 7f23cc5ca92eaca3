package informer_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/internal/faultnet"
)

// brokenEvents is a server of two pods. Each watch from version 20 begins with an event
// whose pod has no name; a list after that watch has only the second pod, at version 30.
type brokenEvents struct {
	t       *testing.T
	typ     watch.EventType
	broken  bool // once a watch has brought the event
	watches int
}

func (s *brokenEvents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protobuf := strings.Contains(r.Header.Get("Accept"), "protobuf")
	if strings.Contains(r.URL.Path, "namespaces/good") {
		s.answerGood(w, r, protobuf)
		return
	}
	q := r.URL.Query()
	switch {
	case q.Get("watch") != "true" && !s.broken:
		s.write(w, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}, Items: []corev1.Pod{*podAt("a", "10")}}, protobuf)
	case q.Get("watch") != "true":
		s.write(w, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "30"}, Items: []corev1.Pod{*podAt("b", "25")}}, protobuf)
	case q.Get("resourceVersion") == "20":
		s.broken = true
		s.watches++
		s.send(w, s.typ, podAt("", "21"), protobuf)
		<-r.Context().Done()
	default:
		s.send(w, watch.Bookmark, podAt("", q.Get("resourceVersion")), protobuf)
		<-r.Context().Done()
	}
}

// answerGood is for a namespace in which everything is well, and nothing there.
func (s *brokenEvents) answerGood(w http.ResponseWriter, r *http.Request, protobuf bool) {
	if r.URL.Query().Get("watch") != "true" {
		s.write(w, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}, Items: []corev1.Pod{}}, protobuf)
		return
	}
	s.send(w, watch.Bookmark, podAt("", "30"), protobuf)
	<-r.Context().Done()
}

func (s *brokenEvents) write(w http.ResponseWriter, obj runtime.Object, protobuf bool) {
	body, contentType, err := codec.Encode(scheme.Default, obj, protobuf)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body)
}

func (s *brokenEvents) send(w http.ResponseWriter, typ watch.EventType, pod *corev1.Pod, protobuf bool) {
	body, contentType, err := codec.Encode(scheme.Default, pod, protobuf)
	if err != nil {
		panic(err)
	}
	if protobuf {
		contentType += ";stream=watch"
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(wiretest.Frame(s.t, typ, body, protobuf))
	_ = http.NewResponseController(w).Flush()
}

func podAt(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bad", Name: name, ResourceVersion: version}}
}

// An event without a name ends no informer: it is listed after the second time.
func TestEventsWithoutANameEndNoInformer(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	makers := map[string]func(f *informer.Factory) (informer.Informer, func() []string){
		"typed": func(f *informer.Factory) (informer.Informer, func() []string) {
			i := informer.For[*corev1.Pod](f, informer.ListOptions{})
			return i, i.Lister().Keys
		},
		"dynamic": func(f *informer.Factory) (informer.Informer, func() []string) {
			i := informer.Dynamic(f, pods, informer.ListOptions{})
			return i, i.Lister().Keys
		},
		"metadata": func(f *informer.Factory) (informer.Informer, func() []string) {
			i := informer.Metadata(f, pods, informer.ListOptions{})
			return i, i.Lister().Keys
		},
		"one of two namespaces": func(f *informer.Factory) (informer.Informer, func() []string) {
			i := informer.For[*corev1.Pod](f, informer.ListOptions{Namespaces: []string{"bad", "good"}})
			return i, i.Lister().Keys
		},
	}
	for name, made := range makers {
		for _, typ := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			for _, encoding := range []client.ContentType{client.JSON, client.Protobuf} {
				t.Run(name+" "+string(typ)+" "+string(encoding), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { runBroken(t, &brokenEvents{t: t, typ: typ}, encoding, made) })
				})
			}
		}
	}
}

func runBroken(t *testing.T, handler *brokenEvents, encoding client.ContentType, made func(f *informer.Factory) (informer.Informer, func() []string)) {
	pipe := faultnet.NewPipe()
	server := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(pipe) }()
	c, err := client.New(&rest.Config{Host: "http://broken"}, client.Options{Dial: pipe.Dial, ForceHTTP1: true, ContentType: encoding})
	if err != nil {
		t.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{Reflector: reflector.Options{PagedList: true}})
	i, keys := made(factory)
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx)
	time.Sleep(time.Minute)
	synctest.Wait()
	if got := keys(); len(got) != 1 || got[0] != "bad/b" {
		t.Errorf("the cache has %v", got)
	}
	if err := i.Err(); err != nil {
		t.Errorf("the informer has ended: %v", err)
	}
	if s := i.Stats().Reflector; handler.watches != 2 || s.Lists[reflector.ListDecode] != 1 || s.DecodeErrors != 2 {
		t.Errorf("%d watches from the version of the broken event; %+v", handler.watches, s)
	}
	cancel()
	factory.Shutdown()
	c.CloseIdleConnections()
	_ = server.Close()
	<-served
}
