package histories

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// spoiler is a server's watches gone wrong: it sits in a client's transport and
// changes the events of watches in JSON.
type spoiler struct {
	// spoil returns what is sent in place of an event.
	spoil func(kind, name string, event []byte) [][]byte
}

func (p *spoiler) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err == nil && request.URL.Query().Has("watch") {
			answer.Body = &spoiled{ReadCloser: answer.Body, lines: bufio.NewReader(answer.Body), spoiler: p}
		}
		return answer, err
	})
}

// spoiled is the body of a watch.
type spoiled struct {
	io.ReadCloser
	lines   *bufio.Reader
	spoiler *spoiler
	ready   []byte
}

// Read implements io.Reader.
func (s *spoiled) Read(into []byte) (int, error) {
	for len(s.ready) == 0 {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		var event struct {
			Type   string
			Object struct{ Metadata metav1.ObjectMeta }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return 0, err
		}
		s.ready = bytes.Join(s.spoiler.spoil(event.Type, event.Object.Metadata.Name, line), nil)
	}
	n := copy(into, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// spoil is a way of going wrong, and the checks that have to notice; others may,
// too.
type spoil struct {
	name       string
	newSubject func(*testing.T, *rest.Config) *subject
	notices    []string
	// with makes what spoils one client's events.
	with func() func(kind, name string, event []byte) [][]byte
}

func asItIs(event []byte) [][]byte { return [][]byte{event} }

// drops drops the events of some kind of the pod that is called so.
func drops(kind, name string) func() func(string, string, []byte) [][]byte {
	return func() func(string, string, []byte) [][]byte {
		return func(k, n string, event []byte) [][]byte {
			if k == kind && n == name {
				return nil
			}
			return asItIs(event)
		}
	}
}

func plain(t *testing.T, config *rest.Config) *subject {
	return plainWatch(t, config, views[0], jsonType)
}

func ours(t *testing.T, config *rest.Config) *subject {
	return ourInformer(t, config, views[0], client.JSON, true)
}

func stock(t *testing.T, config *rest.Config) *subject {
	return stockInformer(t, config, views[0], jsonType, false)
}

// spoils spoil a history in which "changes" is created and changed twice,
// "goes" is created and deleted, and "again" deleted and made again.
var spoils = []spoil{
	{"an event that is lost", plain, []string{"equal", "notified"}, drops("MODIFIED", "changes")},
	{"a creation that is lost", ours, []string{"equal", "notified"}, drops("ADDED", "stays")},
	{"an end that is lost", plain, []string{"equal", "alive", "notified"}, drops("DELETED", "goes")},
	{"a deletion that our informer does not get", ours, []string{"equal", "alive"}, drops("DELETED", "goes")},
	{"a deletion that client-go's informer does not get", stock, []string{"equal", "alive"}, drops("DELETED", "goes")},
	{"an end under a name that is used again", plain, []string{"ordered"}, drops("DELETED", "again")},
	{"a deletion that comes twice", plain, []string{"known"}, func() func(string, string, []byte) [][]byte {
		return func(kind, _ string, event []byte) [][]byte {
			if kind == "DELETED" {
				return [][]byte{event, event}
			}
			return asItIs(event)
		}
	}},
	{"a deletion that client-go's handlers get twice", stock, []string{"known"}, func() func(string, string, []byte) [][]byte {
		return func(kind, _ string, event []byte) [][]byte {
			if kind == "DELETED" {
				return [][]byte{event, event}
			}
			return asItIs(event)
		}
	}},
	{"a pod that rises again", plain, []string{"alive", "equal"}, func() func(string, string, []byte) [][]byte {
		var last []byte
		return func(kind, name string, event []byte) [][]byte {
			switch {
			case name != "goes":
			case kind == "DELETED":
				return [][]byte{event, last}
			default:
				last = event
			}
			return asItIs(event)
		}
	}},
	{"an order that is turned round", plain, []string{"ordered"}, func() func(string, string, []byte) [][]byte {
		var held []byte
		return func(kind, name string, event []byte) [][]byte {
			switch {
			case name != "changes" || kind != "MODIFIED":
				return asItIs(event)
			case held == nil:
				held = event
				return nil
			}
			return [][]byte{event, held}
		}
	}},
	{"a state that never was", plain, []string{"true", "equal"}, func() func(string, string, []byte) [][]byte {
		return func(_, _ string, event []byte) [][]byte {
			return asItIs(bytes.ReplaceAll(event, []byte(`"color":"red"`), []byte(`"color":"pink"`)))
		}
	}},
	{"an end before it comes", plain, []string{"true"}, func() func(string, string, []byte) [][]byte {
		return func(kind, name string, event []byte) [][]byte {
			if kind == "ADDED" && name == "stays" {
				return [][]byte{event, bytes.Replace(event, []byte("ADDED"), []byte("DELETED"), 1)}
			}
			return asItIs(event)
		}
	}},
	{"history that is said to be gone", plain, []string{"frugal"}, func() func(string, string, []byte) [][]byte {
		said := false
		return func(_, _ string, event []byte) [][]byte {
			if said {
				return asItIs(event)
			}
			said = true
			return [][]byte{[]byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n")}
		}
	}},
}

// TestChecksNotice spoils a good history in one way at a time.
func TestChecksNotice(t *testing.T) {
	silent := map[string]bool{}
	for _, c := range checks {
		silent[c.name] = true
	}
	for _, s := range spoils {
		for _, name := range s.notices {
			delete(silent, name)
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			found := shortHistory(t, s.newSubject, s.with())
			for _, name := range s.notices {
				if found[name] == nil {
					t.Errorf("%s did not notice; found: %v", name, found)
				}
			}
		})
	}
	if len(silent) > 0 {
		t.Errorf("nothing is spoiled that these would notice: %v", silent)
	}
	for name, newSubject := range map[string]func(*testing.T, *rest.Config) *subject{"plain": plain, "ours": ours, "stock": stock} {
		t.Run("nothing wrong, "+name, func(t *testing.T) {
			t.Parallel()
			unspoiled := func(_, _ string, event []byte) [][]byte { return asItIs(event) }
			if found := shortHistory(t, newSubject, unspoiled); len(found) > 0 {
				t.Error(found)
			}
		})
	}
}

// shortHistory has one client look at a few changes and says what the checks
// find.
func shortHistory(
	t *testing.T, newSubject func(*testing.T, *rest.Config) *subject, with func(kind, name string, event []byte) [][]byte,
) map[string]error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	t.Cleanup(cancel)
	config, store := serveMemory(t)
	history := follow(ctx, t, store)
	t.Cleanup(cancel)

	spoiledConfig := rest.CopyConfig(config)
	spoiledConfig.Wrap((&spoiler{with}).wrap)
	s := newSubject(t, spoiledConfig)
	w := newScript(ctx, t, config)
	w.create("first", "red")
	t.Cleanup(s.start(ctx, t))
	begin, err := history.upToNow(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	s.mark()
	asked := s.asked()
	w.play()
	for s.copy()[namespaceOfScripts+"/last"].uid == "" {
		if wait(ctx, pause); ctx.Err() != nil {
			t.Fatalf("the last event does not come: %v", s.copy())
		}
	}
	all, err := history.upToNow(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	notes, began := s.received()
	e := &evidence{
		name: s.name, view: s.view, manner: s.manner, history: all, from: begin.until, notes: notes, began: began,
		known: s.copy(), holds: s.holds(), asked: s.asked().since(asked),
	}
	return e.verify()
}

// serveMemory runs a server in this process.
func serveMemory(t *testing.T) (*rest.Config, storage.Store) {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Listen(server.Config{
		DataDir: t.TempDir(), SecurePort: server.AnyPort, Logger: slog.New(slog.DiscardHandler),
		OpenStore: func(context.Context) (storage.Store, error) { return store, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, storage.ErrClosed) {
			t.Errorf("the server's end: %v", err)
		}
	})
	<-s.Ready()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return config, store
}

// script is the writes that are spoiled.
type script struct {
	ctx  context.Context
	t    *testing.T
	pods interface {
		Create(context.Context, *corev1.Pod, metav1.CreateOptions) (*corev1.Pod, error)
		Update(context.Context, *corev1.Pod, metav1.UpdateOptions) (*corev1.Pod, error)
		Delete(context.Context, string, metav1.DeleteOptions) error
	}
}

const namespaceOfScripts = "default"

func newScript(ctx context.Context, t *testing.T, config *rest.Config) *script {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &script{ctx, t, c.CoreV1().Pods(namespaceOfScripts)}
}

func (s *script) create(name, color string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"color": color}, Annotations: map[string]string{"step": "1"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/app:1"}}
	pod, err := s.pods.Create(s.ctx, pod, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return pod
}

func (s *script) delete(name string) {
	s.t.Helper()
	now := int64(0)
	if err := s.pods.Delete(s.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) play() {
	s.t.Helper()
	s.create("stays", "red")
	s.create("goes", "red")
	changing := s.create("changes", "blue")
	for _, step := range []string{"2", "3"} {
		changing.Annotations["step"] = step
		var err error
		if changing, err = s.pods.Update(s.ctx, changing, metav1.UpdateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.delete("goes")
	s.create("again", "blue")
	s.delete("again")
	s.create("again", "red")
	s.create("last", "blue")
}
