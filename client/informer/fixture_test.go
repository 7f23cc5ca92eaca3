package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a server of pods whose history the test writes.
type script struct {
	mu      sync.Mutex
	version int
	pods    map[string]*corev1.Pod
	events  []client.WatchEvent[*corev1.Pod] // the event of version n is events[n-1]
	expired int                              // watches from before it get 410
	changed chan struct{}                    // closed by the next change
	cut     chan struct{}                    // closed by cutAll
	watches int
	lists   int
	// down, while not nil, keeps watches from opening, and lists fail; it is closed by up.
	down chan struct{}
}

func newScript() *script {
	return &script{pods: map[string]*corev1.Pod{}, changed: make(chan struct{}), cut: make(chan struct{})}
}

// set creates or changes a pod. Another uid than before makes it another pod.
func (s *script) set(name string, uid int, labels map[string]string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := watch.Added
	if _, ok := s.pods[name]; ok {
		kind = watch.Modified
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(strconv.Itoa(uid)), Labels: labels}}
	s.note(kind, pod)
	s.pods[name] = pod
	return pod
}

func (s *script) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod := s.pods[name].DeepCopy()
	delete(s.pods, name)
	s.note(watch.Deleted, pod)
}

func (s *script) note(kind watch.EventType, pod *corev1.Pod) {
	s.version++
	pod.ResourceVersion = strconv.Itoa(s.version)
	s.events = append(s.events, client.WatchEvent[*corev1.Pod]{Type: kind, Object: pod})
	close(s.changed)
	s.changed = make(chan struct{})
}

// bookmark says that there is a newer version, and no change.
func (s *script) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(watch.Bookmark, &corev1.Pod{})
}

// setDown keeps watches from opening, and has lists fail, or lets them.
func (s *script) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if down {
		s.down = make(chan struct{})
	} else if s.down != nil {
		close(s.down)
		s.down = nil
	}
}

func (s *script) listCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// forget makes the server answer watches from before now with 410, and ends
// those that are open.
func (s *script) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = s.version
	s.endLocked()
}

// endWatches ends those that are open.
func (s *script) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
}

func (s *script) endLocked() {
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *script) List(context.Context, metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, errors.New("the server is down")
	}
	s.lists++
	list := &client.List[*corev1.Pod]{}
	list.ResourceVersion = strconv.Itoa(s.version)
	for _, name := range slices.Sorted(maps.Keys(s.pods)) { // as servers order them
		list.Items = append(list.Items, s.pods[name])
	}
	return list, nil
}

func (s *script) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.down != nil {
		down := s.down
		s.mu.Unlock()
		select {
		case <-down:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	s.watches++
	after, err := strconv.Atoi(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if after < s.expired || after > s.version {
		return nil, expiredError()
	}
	return &stream{script: s, ctx: ctx, next: after, cut: s.cut, closed: make(chan struct{})}, nil
}

type stream struct {
	script *script
	ctx    context.Context
	next   int
	cut    chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (w *stream) Next() (ev client.WatchEvent[*corev1.Pod], err error) {
	for {
		w.script.mu.Lock()
		changed := w.script.changed
		if w.next < len(w.script.events) {
			ev = w.script.events[w.next]
			w.next++
			w.script.mu.Unlock()
			return ev, nil
		}
		w.script.mu.Unlock()
		select {
		case <-changed:
		case <-w.cut:
			return ev, io.EOF
		case <-w.closed:
			return ev, io.EOF
		case <-w.ctx.Done():
			return ev, w.ctx.Err()
		}
	}
}

func (w *stream) Close() { w.once.Do(func() { close(w.closed) }) }

// record is a handler that records its calls: "+a1" (added, version 1),
// "*a1>2", "-a3", "-a3?" (final state unknown); "!" marks initial.
type record struct {
	mu   sync.Mutex
	said []string
	// gate, if not nil, must yield a token before each call returns.
	gate chan struct{}
}

func (r *record) say(format string, args ...any) {
	r.mu.Lock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
	r.mu.Unlock()
	if r.gate != nil {
		<-r.gate
	}
}

func (r *record) OnAdd(pod *corev1.Pod, initial bool) {
	mark := ""
	if initial {
		mark = "!"
	}
	r.say("+%s%s%s", pod.Name, pod.ResourceVersion, mark)
}

func (r *record) OnUpdate(old, pod *corev1.Pod) {
	r.say("*%s%s>%s", pod.Name, old.ResourceVersion, pod.ResourceVersion)
}

func (r *record) OnDelete(pod *corev1.Pod, finalStateUnknown bool) {
	mark := ""
	if finalStateUnknown {
		mark = "?"
	}
	r.say("-%s%s%s", pod.Name, pod.ResourceVersion, mark)
}

// take returns what was said since the last take.
func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := r.said
	r.said = nil
	return said
}

func (r *record) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// in runs a test in a bubble with an informer over the script. The informer
// runs until the test's function returns.
func in(t *testing.T, test func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod])) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		test(t, s, i)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func add(t *testing.T, i *SharedInformer[*corev1.Pod], h Handler[*corev1.Pod], opts HandlerOptions) *Registration {
	t.Helper()
	registration, err := i.AddHandler(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	return registration
}
