package events_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/events"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is how long anything may take before a test fails.
const testTimeout = 3 * time.Minute

// connect starts a server and returns a client of it.
func connect(t *testing.T) (context.Context, *client.Client) {
	t.Helper()
	srv := levelwiretest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx, srv.Client(client.Options{})
}

// run writes what is reported, until the test ends.
func run(ctx context.Context, t *testing.T, r *events.Recorder) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}

// await watches the events of a namespace until one is as wanted.
func await(ctx context.Context, t *testing.T, c *client.Client, wanted func(*corev1.Event) bool) *corev1.Event {
	t.Helper()
	api := client.For[*corev1.Event](c).Namespace("default")
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		if wanted(event) {
			return event
		}
	}
	w, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		ev, err := w.Next()
		if err != nil {
			t.Fatalf("waited in vain: %v", err)
		}
		if ev.Type != watch.Deleted && wanted(ev.Object) {
			return ev.Object
		}
	}
}

func reason(want string) func(*corev1.Event) bool {
	return func(event *corev1.Event) bool { return event.Reason == want }
}

func aPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u", ResourceVersion: "7"}}
}

func TestEventTellsWhatAndWho(t *testing.T) {
	ctx, c := connect(t)
	r := events.New(c, "tester", events.Options{Host: "here", Logger: slog.New(slog.DiscardHandler)})
	run(ctx, t, r)
	r.Warning(aPod("web-0"), "Broken", "%d of %d", 2, 3)
	event := await(ctx, t, c, reason("Broken"))
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web-0", UID: "u", ResourceVersion: "7"}
	if event.InvolvedObject != want {
		t.Errorf("about %+v, want %+v", event.InvolvedObject, want)
	}
	if event.Type != corev1.EventTypeWarning || event.Message != "2 of 3" || event.Count != 1 ||
		event.Source != (corev1.EventSource{Component: "tester", Host: "here"}) || event.LastTimestamp.IsZero() {
		t.Errorf("%+v", event)
	}
	// kubectl describe node looks where events of cluster-scoped objects go.
	r.Normal(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, "Seen", "hello")
	if event := await(ctx, t, c, reason("Seen")); event.Type != corev1.EventTypeNormal || event.InvolvedObject.Namespace != "" {
		t.Errorf("%+v", event)
	}
}

// The names of some kinds are no names of Events.
func TestEventsAboutObjectsOfAnyName(t *testing.T) {
	ctx, c := connect(t)
	r := events.New(c, "tester", events.Options{Logger: slog.New(slog.DiscardHandler)})
	run(ctx, t, r)
	names := []string{"system:thing", "Admin", "a_b", "view*", ":", "2001:db8::1", strings.Repeat("a", 253)}
	for _, name := range names {
		r.Normal(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, "Seen", "hello")
	}
	for _, name := range names {
		await(ctx, t, c, func(event *corev1.Event) bool { return event.InvolvedObject.Name == name })
	}
}

func TestSameEventIsCounted(t *testing.T) {
	ctx, c := connect(t)
	r := events.New(c, "tester", events.Options{Logger: slog.New(slog.DiscardHandler)})
	run(ctx, t, r)
	for range 3 {
		r.Normal(aPod("p"), "Again", "the same")
	}
	r.Normal(aPod("p"), "Again", "another")
	third := await(ctx, t, c, func(event *corev1.Event) bool { return event.Count == 3 })
	await(ctx, t, c, func(event *corev1.Event) bool { return event.Message == "another" && event.Count == 1 })

	// When the server has deleted an event, its next occurrence is a new one.
	if err := client.For[*corev1.Event](c).Namespace("default").Delete(ctx, third.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Normal(aPod("p"), "Again", "the same")
	await(ctx, t, c, func(event *corev1.Event) bool {
		return event.Message == "the same" && event.Count == 1 && event.Name != third.Name
	})
}

// Names of pods may be as long as those of events may be.
func TestLongNamesAndMessages(t *testing.T) {
	ctx, c := connect(t)
	r := events.New(c, "tester", events.Options{Logger: slog.New(slog.DiscardHandler)})
	run(ctx, t, r)
	name := strings.Repeat("x", 253)
	r.Normal(aPod(name), "Long", "%s", strings.Repeat("ü", 5000))
	event := await(ctx, t, c, reason("Long"))
	if event.InvolvedObject.Name != name {
		t.Errorf("about %s", event.InvolvedObject.Name)
	}
	if len(event.Message) > 1024 || !strings.HasSuffix(event.Message, "ü...") {
		t.Errorf("a message of %d bytes, ending in %q", len(event.Message), event.Message[len(event.Message)-6:])
	}
}
