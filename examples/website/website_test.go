package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/conditions"
	"github.com/levelwire/levelwire/client/objectmeta"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a server with the definition of Websites, and a controller. It lives in a
// bubble of testing/synctest, in which an hour takes no time.
type scene struct {
	t        *testing.T
	c        *client.Client // the test's own, without faults
	websites client.Resource[*Website]
	ended    chan error
	stop     func()
}

// begin starts a server and the controller, with whose requests faults may interfere.
func begin(t *testing.T, faults *levelwiretest.Faults) *scene {
	t.Helper()
	server := levelwiretest.StartInMemory(t)
	c := server.Client(client.Options{})
	if err := register(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, c: c, websites: client.For[*Website](c).Namespace("default"), ended: make(chan error, 1)}
	levelwiretest.ApplyFiles(t, c, "crd.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	go func() { s.ended <- run(ctx, server.Client(client.Options{WrapTransport: faults.Wrap})) }()
	settle()
	return s
}

// end stops the controller, which must not have failed.
func (s *scene) end() {
	s.t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
}

// settle waits until the server and the controller are idle, back-offs included.
func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func create[T client.Object](s *scene, obj T) {
	s.t.Helper()
	if _, err := client.For[T](s.c).Create(s.t.Context(), obj, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// website creates a Website in the namespace default.
func (s *scene) website(name string) {
	s.t.Helper()
	create(s, &Website{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       WebsiteSpec{Host: "hello.example.com", Page: "<h1>Hello</h1>", Replicas: 2},
	})
}

// serve does what the Deployment's controller and nodes would do.
func (s *scene) serve(name string) {
	s.t.Helper()
	_, err := client.For[*appsv1.Deployment](s.c).Namespace("default").UpdateStatusWithRetry(s.t.Context(), name+"-website", func(d *appsv1.Deployment) error {
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, ReadyReplicas: *d.Spec.Replicas}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// reason returns the reason of the condition Ready, of the present generation.
func (s *scene) reason(name string) string {
	s.t.Helper()
	website, err := s.websites.Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	condition := conditions.Get(website.Status.Conditions, ready)
	if condition == nil || condition.ObservedGeneration != website.Generation || website.Status.ObservedGeneration != website.Generation {
		return "not observed"
	}
	return condition.Reason
}

func (s *scene) want(name, reason string) {
	s.t.Helper()
	settle()
	if got := s.reason(name); got != reason {
		s.t.Errorf("%s is %s, want %s", name, got, reason)
	}
}

// wantGone checks that a Website is gone and its host name is free.
func (s *scene) wantGone(name string) {
	s.t.Helper()
	settle()
	if _, err := s.websites.Get(s.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.t.Errorf("the deleted Website is there: %v", err)
	}
	hosts, err := client.For[*corev1.ConfigMap](s.c).Namespace(hostsNamespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: websiteLabel})
	if err != nil || len(hosts.Items) != 0 {
		s.t.Errorf("host names that are in use: %v, %v", hosts.Items, err)
	}
}

func (s *scene) delete(name string) {
	s.t.Helper()
	if err := s.websites.Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// TestWebsite is a Website's life.
func TestWebsite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, new(levelwiretest.Faults))
		defer s.end()
		ctx := t.Context()

		s.website("first")
		s.want("first", "Progressing")
		website, err := s.websites.Get(ctx, "first", metav1.GetOptions{})
		if err != nil || !objectmeta.HasFinalizer(website, finalizer) {
			t.Fatalf("finalizers %v, %v", website.Finalizers, err)
		}
		page, err := client.For[*corev1.ConfigMap](s.c).Namespace("default").Get(ctx, "first-website", metav1.GetOptions{})
		if err != nil || page.Data["index.html"] != "<h1>Hello</h1>" || !objectmeta.IsControlledBy(page, website) {
			t.Errorf("page %v, %v", page, err)
		}
		s.serve("first")
		s.want("first", "Serving")

		s.website("second")
		s.want("second", "HostTaken")
		s.delete("first")
		s.want("second", "Progressing") // it has the host name now
		s.serve("second")
		s.want("second", "Serving")

		if _, err := s.websites.UpdateWithRetry(ctx, "second", func(w *Website) error { w.Spec.Host = "other.example.com"; return nil }); !apierrors.IsInvalid(err) {
			t.Errorf("another host name: %v", err)
		}
		if _, err := s.websites.UpdateWithRetry(ctx, "second", func(w *Website) error { w.Spec.Replicas = 0; return nil }); err != nil {
			t.Fatal(err)
		}
		settle()
		s.serve("second")
		s.want("second", "Serving")
		s.delete("second")
		s.wantGone("second")

		want := []string{
			"first Normal Progressing", "first Normal Serving",
			"second Normal Progressing", "second Normal Serving", "second Warning HostTaken",
		}
		if got := s.events(); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// events returns which events the controller has reported, sorted.
func (s *scene) events() (reported []string) {
	s.t.Helper()
	for event, err := range client.For[*corev1.Event](s.c).Namespace("default").All(s.t.Context(), metav1.ListOptions{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		if event.Source.Component == name {
			reported = append(reported, event.InvolvedObject.Name+" "+event.Type+" "+event.Reason)
		}
	}
	slices.Sort(reported)
	return slices.Compact(reported)
}
