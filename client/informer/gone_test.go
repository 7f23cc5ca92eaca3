package informer

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// table is a server that may or may not have the resource.
type table struct {
	*script
	without bool // guarded by script.mu
	// answer is what a server without the resource says; nil: a Status of 404.
	answer error
}

func (s *table) refusal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.without && s.answer != nil {
		return s.answer
	}
	if s.without {
		return apierrors.NewGenericServerResponse(404, "list", corev1.Resource("pods"), "", "the server could not find the requested resource", 0, true)
	}
	return nil
}

func (s *table) set(without bool) {
	s.mu.Lock()
	s.without = without
	s.mu.Unlock()
	s.forget() // which ends the watches
}

func (s *table) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	return s.script.List(ctx, opts)
}

func (s *table) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	if err := s.refusal(); err != nil {
		return nil, err
	}
	return s.script.Watch(ctx, opts)
}

func TestResourceThatIsGoneIsEmptyAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &table{script: newScript()}
		s.script.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		var r record
		add(t, i, &r, HandlerOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		r.expect(t, "+a1!")

		s.set(true)
		time.Sleep(30 * time.Second)
		r.expect(t) // it may come back any moment, as that of a server that starts does
		if f := i.Freshness(); !f.GoneSince.IsZero() || i.Lister().Len() != 1 {
			t.Errorf("after half a minute: %+v, %d objects", f, i.Lister().Len())
		}
		time.Sleep(3 * time.Minute)
		r.expect(t, "-a1?")
		f, err := i.Freshness(), i.Healthy(time.Hour)
		if f.GoneSince.IsZero() || f.Listing || f.Version != "" || !f.Synced || i.Lister().Len() != 0 {
			t.Errorf("when gone: %+v, %d objects", f, i.Lister().Len())
		}
		if err == nil || !strings.Contains(err.Error(), "has not had the resource") {
			t.Errorf("health when gone: %v", err)
		}

		s.script.set("b", 2, nil)
		s.set(false)
		time.Sleep(time.Minute)
		r.expect(t, "+a1", "+b2")
		if f, err := i.Freshness(), i.Healthy(time.Hour); !f.GoneSince.IsZero() || f.Version != "2" || err != nil {
			t.Errorf("when back: %+v, %v", f, err)
		}
		s.script.set("b", 2, nil)
		r.expect(t, "*b2>3")
		if lists := i.ReflectorStats().Lists; lists[reflector.ListReturned] != 1 {
			t.Errorf("lists: %v", lists)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The file on disk keeps the state from when the resource was there: a watch
// cannot resume from the empty state after it.
func TestGoneResourceIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &table{script: newScript()}
		s.script.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		must(t, i.KeepOnDisk(DiskOptions{Directory: t.TempDir(), Interval: time.Minute,
			Identify: func(context.Context) (string, error) { return "here", nil }}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		time.Sleep(time.Second)
		s.set(true)
		time.Sleep(10 * time.Minute)
		cancel()
		<-done
		if d := i.Stats().Disk; d.Saves != 1 || d.Advances != 0 || d.Failures != 0 || i.Lister().Len() != 0 {
			t.Errorf("%+v, %d objects", d, i.Lister().Len())
		}
	})
}

// A source that cannot ask for discovery does not empty the cache because of a proxy.
func TestPageOfAProxyDoesNotEmptyACustomSource(t *testing.T) {
	proxy := httptest.NewServer(http.NotFoundHandler())
	defer proxy.Close()
	c, err := client.New(&rest.Config{Host: proxy.URL}, client.Options{})
	must(t, err)
	_, page := client.For[*corev1.Pod](c).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsNotFound(page) || client.IsStatus(page) {
		t.Fatalf("the proxy's page is %v", page)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &table{script: newScript(), answer: page}
		s.script.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		<-i.Synced()
		s.set(true)
		time.Sleep(10 * time.Minute)
		if f := i.Freshness(); !f.GoneSince.IsZero() || i.Lister().Len() != 1 {
			t.Errorf("after ten minutes: %+v, %d objects", f, i.Lister().Len())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
