package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
)

// frame encodes an event as servers do.
func frame(t testing.TB, typ watch.EventType, obj runtime.Object, protobuf bool) []byte {
	t.Helper()
	data, _, err := codec.Encode(scheme.Default, obj, protobuf)
	if err != nil {
		t.Fatal(err)
	}
	return wiretest.Frame(t, typ, data, protobuf)
}

// eachWire runs a test for both versions of HTTP and both encodings.
func eachWire(t *testing.T, f func(t *testing.T, opts Options, contentType string, protobuf bool)) {
	for version, opts := range httpVersions {
		t.Run(version+" JSON", func(t *testing.T) { f(t, opts, "application/json", false) })
		t.Run(version+" protobuf", func(t *testing.T) {
			opts.ContentType = Protobuf
			f(t, opts, "application/vnd.kubernetes.protobuf;stream=watch", true)
		})
	}
}

func TestWatchGivesEventsInOrder(t *testing.T) {
	eachWire(t, func(t *testing.T, opts Options, contentType string, protobuf bool) {
		client, _ := serve(t, opts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") != "true" || r.Header.Get("Accept-Encoding") != "identity" {
				http.Error(w, "not as a watch should be", http.StatusTeapot)
				return
			}
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(frame(t, watch.Added, wiretest.Pod(1), protobuf))
			_, _ = w.Write(frame(t, watch.Modified, wiretest.Pod(2), protobuf))
			_, _ = w.Write(frame(t, watch.Deleted, wiretest.Pod(3), protobuf))
			_, _ = w.Write(frame(t, watch.Bookmark, wiretest.Bookmark("77", true), protobuf))
			_, _ = w.Write(frame(t, watch.Bookmark, wiretest.Bookmark("78", false), protobuf))
		}))
		w, err := For[*corev1.Pod](client).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := []struct {
			typ     watch.EventType
			name    string
			version string
			end     bool
		}{
			{watch.Added, "web-000001", "1001", false}, {watch.Modified, "web-000002", "1002", false},
			{watch.Deleted, "web-000003", "1003", false}, {watch.Bookmark, "", "77", true}, {watch.Bookmark, "", "78", false},
		}
		for i, want := range want {
			ev, err := w.Next()
			if err != nil || ev.Type != want.typ || ev.Object.Name != want.name ||
				ev.Object.ResourceVersion != want.version || ev.InitialEventsEnd() != want.end || ev.Object.Kind != "" {
				t.Fatalf("event %d: %v %+v, %v", i, ev.Type, ev.Object, err)
			}
		}
		for range 2 {
			if _, err := w.Next(); err != io.EOF {
				t.Errorf("got %v, want io.EOF", err)
			}
		}
		w.Close()
		if got := client.Stats().ActiveWatches; got != 0 {
			t.Errorf("%d active watches", got)
		}
	})
}

func TestErrorEventsAreGoErrors(t *testing.T) {
	eachWire(t, func(t *testing.T, opts Options, contentType string, protobuf bool) {
		expired := apierrors.NewResourceExpired("too old resource version: 1 (5)").Status()
		expired.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		body := frame(t, watch.Error, &expired, protobuf)
		client, _ := serve(t, opts, answerWith(contentType, body))
		w, err := For[*corev1.Pod](client).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Next(); !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "too old") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCutConnection(t *testing.T) {
	eachWire(t, func(t *testing.T, opts Options, contentType string, protobuf bool) {
		client, _ := serve(t, opts, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(frame(t, watch.Added, wiretest.Pod(1), protobuf))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // between two events, where only the protocol can tell
		}))
		w, err := For[*corev1.Pod](client).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Next(); err != nil {
			t.Fatal(err)
		}
		_, err = w.Next()
		var decode *DecodeError
		if err == nil || err == io.EOF || errors.As(err, &decode) {
			t.Errorf("got %v, want an error of the connection", err)
		}
	})
}

// A proxy may end the body well in the middle of an event: that is no end of the stream.
func TestBodyThatEndsWithinAnEvent(t *testing.T) {
	eachWire(t, func(t *testing.T, opts Options, contentType string, protobuf bool) {
		whole := frame(t, watch.Added, wiretest.Pod(1), protobuf)
		for _, cut := range []int{1, 3, 4, 5, len(whole) / 2, len(whole) - 2} {
			client, _ := serve(t, opts, answerWith(contentType, append(slices.Clone(whole), whole[:cut]...)))
			w, err := For[*corev1.Pod](client).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Next(); err != nil {
				t.Fatal(err)
			}
			_, err = w.Next()
			var decode *DecodeError
			if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &decode) {
				t.Errorf("after %d bytes: %v, want an unexpected end", cut, err)
			}
		}
	})
}

func TestEventsThatCannotBeUnderstood(t *testing.T) {
	bad := frame(t, watch.Added, wiretest.Pod(1), true)
	bad[len(bad)-3] ^= 0xff
	for name, test := range map[string]struct {
		body     string
		protobuf bool
	}{
		"unknown type":          {`{"type":"MOVED","object":{}}`, false},
		"no type":               {`{"object":{}}`, false},
		"no object":             {`{"type":"ADDED"}`, false},
		"object is text":        {`{"type":"ADDED","object":"x"}`, false},
		"wrong field":           {`{"type":"ADDED","object":{"metadata":{"name":{}}}}`, false},
		"not an object":         {`[]`, false},
		"not JSON":              {`<html>`, false},
		"protobuf without k8s":  {"\x00\x00\x00\x08\x0a\x05ADDED\x12", true},
		"protobuf with no type": {"\x00\x00\x00\x00", true},
	} {
		t.Run(name, func(t *testing.T) {
			ct := "application/json"
			if test.protobuf {
				ct = string(Protobuf)
			}
			client, _ := serve(t, Options{}, answerWith(ct, []byte(test.body)))
			w, err := For[*corev1.Pod](client).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Next()
			var decode *DecodeError
			if !errors.As(err, &decode) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEventOverTheLimit(t *testing.T) {
	eachWire(t, func(t *testing.T, opts Options, contentType string, protobuf bool) {
		opts.MaxFrameBytes = 50_000
		pod := wiretest.Pod(1)
		small := frame(t, watch.Added, pod, protobuf)
		pod.Annotations["big"] = strings.Repeat("x", 100_000)
		client, _ := serve(t, opts, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			for range 100 {
				_, _ = w.Write(small)
			}
			_, _ = w.Write(frame(t, watch.Added, pod, protobuf))
		}))
		w, err := For[*corev1.Pod](client).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err = w.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Next(); !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("got %v", err)
		}
	})
}

// idle keeps streams open and says when their clients have gone.
func idle(contentType string, gone chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	})
}

func TestClosingAWatch(t *testing.T) {
	cause := errors.New("enough")
	for name, end := range map[string]func(*Watch[*corev1.Pod], context.CancelCauseFunc) error{
		"Close":   func(w *Watch[*corev1.Pod], _ context.CancelCauseFunc) error { w.Close(); return ErrClosed },
		"context": func(_ *Watch[*corev1.Pod], c context.CancelCauseFunc) error { c(cause); return cause },
	} {
		for _, waits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, somebody waits: %v", name, waits), func(t *testing.T) {
				eachWire(t, func(t *testing.T, opts Options, contentType string, _ bool) {
					synctest.Test(t, func(t *testing.T) {
						gone := make(chan struct{}, 1)
						o := &observed{}
						opts.Observer = o
						client, _ := serve(t, opts, idle(contentType, gone))
						ctx, cancel := context.WithCancelCause(t.Context())
						w, err := For[*corev1.Pod](client).Watch(ctx, metav1.ListOptions{})
						if err != nil {
							t.Fatal(err)
						}
						if got := client.Stats().ActiveWatches; got != 1 {
							t.Errorf("%d active watches", got)
						}
						result := make(chan error, 1)
						if waits {
							go func() { _, err := w.Next(); result <- err }()
							synctest.Wait()
						}
						want := end(w, cancel)
						if waits {
							if err := <-result; !errors.Is(err, want) {
								t.Errorf("got %v, want %v", err, want)
							}
						}
						<-gone
						synctest.Wait()
						if got := client.Stats().ActiveWatches; got != 0 || len(o.requests) != 1 || len(o.attempts) != 1 {
							t.Errorf("%d active watches, reported %+v", got, o)
						}
					})
				})
			})
		}
	}
}

// A program that cannot wait for a probe leaves a dead connection. What runs on a connection
// that works goes on, and the connection ends with it.
func TestReconnect(t *testing.T) {
	for name, opts := range httpVersions {
		for _, dead := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dead %v", name, dead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					gone := make(chan struct{}, 1)
					watches := idle("application/json", gone)
					client, net := serve(t, opts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Query().Get("watch") == "true" {
							watches.ServeHTTP(w, r)
							return
						}
						answerJSON(w, http.StatusOK, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`)
					}))
					ctx, cancel := context.WithCancel(t.Context())
					w, err := For[*corev1.Pod](client).Watch(ctx, metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					ended := make(chan error, 1)
					go func() {
						_, err := w.Next()
						ended <- err
					}()
					if err := get(client, t); err != nil {
						t.Fatal(err)
					}
					if dead {
						net.goDeaf()
						for range 2 { // over HTTP/1.1, the second is on another connection by itself
							short, cancel := context.WithTimeout(ctx, 2*time.Second)
							_, err := For[*corev1.Pod](client).Namespace("ns").Get(short, "a", metav1.GetOptions{})
							cancel()
							if err == nil && opts.UnencryptedHTTP2 {
								t.Error("a request on the dead connection was answered")
							}
						}
					}
					before := net.dialed()
					client.Reconnect()
					begun := time.Now()
					if err := get(client, t); err != nil || time.Since(begun) > time.Second {
						t.Errorf("after %v: %v", time.Since(begun), err)
					}
					if got := net.dialed() - before; got != 1 {
						t.Errorf("%d new connections", got)
					}
					synctest.Wait()
					select {
					case err := <-ended:
						t.Errorf("the watch has ended: %v", err)
					default:
					}
					cancel()
					<-ended
					if !dead {
						<-gone
					}
				})
			})
		}
	}
}

// Nothing that a half-open connection is asked comes back, and only a probe
// finds it out.
func TestPingsFindHalfOpenConnections(t *testing.T) {
	for _, test := range []struct {
		opts  Options
		found time.Duration // 0: never
	}{
		{Options{}, 15 * time.Second},
		{Options{ReadIdleTimeout: 30 * time.Second, PingTimeout: 7 * time.Second}, 37 * time.Second},
		{Options{ReadIdleTimeout: -1}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan struct{}, 1)
			test.opts.UnencryptedHTTP2 = true
			client, net := serve(t, test.opts, idle("application/json", gone))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			w, err := For[*corev1.Pod](client).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			net.goDeaf()
			_, err = w.Next()
			took := time.Since(start)
			if test.found == 0 {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("probes are off, and yet after %v: %v", took, err)
				}
			} else if errors.Is(err, context.DeadlineExceeded) || took > test.found || took < test.found/2 {
				t.Errorf("found after %v (%v), want %v", took, err, test.found)
			}
			if test.found == 0 {
				return
			}
			if _, err := For[*corev1.Pod](client).Watch(ctx, metav1.ListOptions{}); err != nil {
				t.Errorf("watch again: %v", err)
			}
			if got := net.dialed(); got != 2 {
				t.Errorf("%d connections, want a second one", got)
			}
			cancel()
			<-gone
		})
	}
}
