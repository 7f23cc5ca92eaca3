package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines collects what was printed since they were last taken.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// want compares what was printed, in any order: between objects there is none.
func (l *lines) want(t *testing.T, want ...string) {
	t.Helper()
	time.Sleep(time.Minute) // takes no time
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
	l.text.Reset()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSeveralNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := levelwiretest.StartInMemory(t)
		c := server.Client(client.Options{})
		for _, name := range []string{"a", "b", "c", "other"} {
			if _, err := client.For[*corev1.Namespace](c).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		pods := client.For[*corev1.Pod](c)
		create := func(namespace, name, tier string) {
			t.Helper()
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"tier": tier}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		create("a", "first", "web")
		create("c", "db", "db")
		create("c", "web", "web")
		create("other", "not-seen", "db")

		// The program may look at three namespaces only.
		faults := new(levelwiretest.Faults)
		faults.Add(levelwiretest.Fault{Resource: "pods", Err: apierrors.NewForbidden(corev1.Resource("pods"), "", nil)})
		for _, namespace := range []string{"a", "b", "c"} {
			faults.Add(levelwiretest.Fault{Resource: "pods", Namespace: namespace})
		}
		ctx, stop := context.WithCancel(t.Context())
		out, ended := new(lines), make(chan error, 1)
		go func() {
			ended <- run(ctx, server.Client(client.Options{WrapTransport: faults.Wrap}), []string{"a", "c:tier=db", "b"}, out)
		}()
		out.want(t, "+ a/first is Pending (was there: true)", "+ c/db is Pending (was there: true)",
			"a has 1 pods", "b has 0 pods", "c has 1 pods")

		create("b", "second", "web")
		create("c", "web-2", "web")
		create("other", "not-seen-either", "db")
		if _, err := pods.Namespace("a").UpdateStatusWithRetry(t.Context(), "first", func(pod *corev1.Pod) error {
			pod.Status.Phase = corev1.PodRunning
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		out.want(t, "+ b/second is Pending (was there: false)", "  a/first went from Pending to Running")

		faults.CutWatches()
		now := int64(0)
		if err := pods.Namespace("c").Delete(t.Context(), "db", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
		out.want(t, "- c/db (final state unknown: false)") // the watch has resumed, and says all

		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
