package cached_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cached"
	"github.com/levelwire/levelwire/client/informer"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// A list of several values of a label has an object once that changes from one of
// them to another.
func TestListWhileALabelChanges(t *testing.T) {
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n","labels":{"state":%q},"resourceVersion":"%d"}}`
	const changes = 5000
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`+pod+`]}`, "a", 1)
			return
		}
		for n := range changes {
			_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":`+pod+`}`, []string{"b", "a"}[n%2], 2+n)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	opts := informer.Options{Logger: slog.New(slog.DiscardHandler)}
	opts.Reflector.PagedList = true
	factory := informer.NewFactory(c, opts)
	defer factory.Shutdown()
	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{})
	if err := pods.AddIndexers(cached.LabelIndexers[*corev1.Pod]("state")); err != nil {
		t.Fatal(err)
	}
	reader := cached.NewReader(factory, cached.Options{Shared: true})
	if err := cached.Add(reader, pods); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	factory.Start(ctx)
	ended := make(chan error, 1)
	go func() { ended <- pods.WaitForResourceVersion(ctx, fmt.Sprint(1+changes)) }()
	for wrong := 0; ; {
		list, err := cached.For[*corev1.Pod](reader).List(ctx, metav1.ListOptions{LabelSelector: "state in (a,b)"})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 1 {
			if wrong++; wrong < 5 {
				t.Errorf("%d pods at resourceVersion %s", len(list.Items), list.ResourceVersion)
			}
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}
