package audit

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// lumberjack's goroutine that deletes old files lives as long as the process.
		goleak.IgnoreTopFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"))
}

// recorder is a backend that keeps batches, and hangs until hangs is closed.
type recorder struct {
	hangs   chan struct{}
	mu      sync.Mutex
	batches [][]string
}

// newRecorder returns one that does not hang.
func newRecorder() *recorder {
	r := &recorder{hangs: make(chan struct{})}
	close(r.hangs)
	return r
}

func (r *recorder) backend() backend {
	return backend{plugin: pluginWebhook, send: func(batch []*auditinternal.Event) map[string]int {
		<-r.hangs
		r.mu.Lock()
		defer r.mu.Unlock()
		var ids []string
		for _, e := range batch {
			ids = append(ids, string(e.AuditID))
		}
		r.batches = append(r.batches, ids)
		return nil
	}}
}

// sent returns the batches so far.
func (r *recorder) sent() [][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.batches)
}

func event(i int, body string) *auditinternal.Event {
	return &auditinternal.Event{AuditID: types.UID(fmt.Sprint(i)), RequestObject: &runtime.Unknown{Raw: []byte(body)}}
}

func lost(m *metrics, plugin string) int {
	return int(testutil.ToFloat64(m.lost.WithLabelValues(plugin)))
}

// TestQueueThrottlesBatches: after a burst, batches go at their rate, what the buffer cannot
// hold meanwhile is lost and counted, and a closed queue sends the rest at once.
func TestQueueThrottlesBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := &recorder{hangs: make(chan struct{})}, newMetrics()
		q := newQueue(r.backend(), limits{events: 6, bytes: 1 << 30, batch: 1, senders: 1, perSecond: 2, burst: 2}, m, slog.New(slog.DiscardHandler))
		for i := range 10 {
			q.add(event(i, ""))
		}
		close(r.hangs)
		synctest.Wait()
		if sent := r.sent(); len(sent) != 2 {
			t.Errorf("at once, %v are sent", sent)
		}
		if n := lost(m, pluginBuffered); n != 4 {
			t.Errorf("%d events are lost", n)
		}
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if sent := r.sent(); len(sent) != 4 {
			t.Errorf("after a second, %v are sent", sent)
		}
		q.close()
		q.await(t.Context())
		if sent := r.sent(); len(sent) != 6 {
			t.Errorf("after the end, %v are sent", sent)
		}
		q.end()
	})
}

// TestDelivery: the defaults are kube-apiserver's, and what is wrong names the flag.
func TestDelivery(t *testing.T) {
	var webhook, file Delivery
	if err := webhook.complete("webhook", webhookDelivery); err != nil {
		t.Fatal(err)
	}
	if err := file.complete("log", logDelivery); err != nil {
		t.Fatal(err)
	}
	if l := webhook.limits(1, 4); l != (limits{events: 10_000, bytes: 1, batch: 400, senders: 4, wait: 30 * time.Second, perSecond: 10, burst: 15}) {
		t.Errorf("the webhook has %+v", l)
	}
	if l := file.limits(1, 1); l.perSecond > 0 || l.wait != 0 || l.events != 10_000 {
		t.Errorf("the log has %+v", l)
	}
	if webhook.MaxEventBytes != 102400 || webhook.MaxBatchBytes != 10485760 {
		t.Errorf("truncation at %d and %d", webhook.MaxEventBytes, webhook.MaxBatchBytes)
	}
	for want, wrong := range map[string]Delivery{
		"--audit-log-batch-buffer-size":        {BufferSize: -1},
		"--audit-log-truncate-max-event-size":  {MaxEventBytes: -1},
		"--audit-log-truncate-max-batch-size":  {MaxEventBytes: 2, MaxBatchBytes: 1},
		`--audit-log-version "audit.k8s.io/v1`: {Version: "audit.k8s.io/v1beta1"},
		`--audit-log-mode "wait"`:              {Mode: "wait"},
	} {
		if err := wrong.complete("log", logDelivery); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", wrong, err, want)
		}
	}
}

// TestQueueMakesBatches: full ones at once, and others when their time is over, whenever
// the queue's goroutine comes to look.
func TestQueueMakesBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := newRecorder(), newMetrics()
		q := newQueue(r.backend(), limits{events: 100, bytes: 1 << 30, batch: 3, senders: 1, wait: time.Minute}, m, slog.New(slog.DiscardHandler))
		for i := range 7 {
			q.add(event(i, ""))
			if i%2 == 0 {
				synctest.Wait()
			}
		}
		time.Sleep(time.Second)
		q.add(event(7, ""))
		time.Sleep(time.Minute - 2*time.Second)
		before := len(r.sent())
		time.Sleep(3 * time.Second)
		if got := fmt.Sprint(r.sent()); got != "[[0 1 2] [3 4 5] [6 7]]" || before != 2 {
			t.Errorf("%s, %d before the time was over", got, before)
		}
		q.add(event(8, ""))
		q.close()
		q.await(t.Context())
		q.end()
		q.add(event(9, ""))
		if got := r.sent()[len(r.sent())-1]; fmt.Sprint(got) != "[8]" || lost(m, pluginBuffered) != 1 {
			t.Errorf("the last batch is %v, %d lost", got, lost(m, pluginBuffered))
		}
	})
}

// TestQueueLosesWhatDoesNotFit, by number and by bytes, and never blocks.
func TestQueueLosesWhatDoesNotFit(t *testing.T) {
	for _, l := range []limits{{events: 10, bytes: 1 << 30}, {events: 1000, bytes: 10 * sizeOf(event(0, strings.Repeat("x", 100)))}} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			r, m := &recorder{hangs: make(chan struct{})}, newMetrics()
			l.batch, l.senders = 2, 2
			q := newQueue(r.backend(), l, m, slog.New(slog.NewTextHandler(&log, nil)))
			for i := range 50 {
				q.add(event(i, strings.Repeat("x", 100)))
				synctest.Wait()
			}
			if n := lost(m, pluginBuffered); n != 40 {
				t.Errorf("%d events are lost, want 40", n)
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 {
				t.Errorf("%d lines are logged:\n%s", lines, log.String())
			}
			close(r.hangs)
			synctest.Wait()
			q.add(event(50, ""))
			q.close()
			q.await(t.Context())
			q.end()
			total := 0
			for _, b := range r.sent() {
				total += len(b)
			}
			if total != 11 || q.events != 0 || q.bytes != 0 {
				t.Errorf("%d events arrived; the queue counts %d of %d bytes", total, q.events, q.bytes)
			}
		})
	}
}

// TestSizeCountsEverything that varies in length: each string of an event, wherever it
// is, but those that are constants of the server.
func TestSizeCountsEverything(t *testing.T) {
	const length = 10_000
	constant := []string{"TypeMeta", "Level", "Stage", "ContentType", "ContentEncoding"}
	long := strings.Repeat("x", length)
	// fill sets one string after another below v, and calls check for each.
	var fill func(path string, v reflect.Value, check func(path string))
	fill = func(path string, v reflect.Value, check func(path string)) {
		before := reflect.ValueOf(v.Interface())
		switch v.Kind() {
		case reflect.String:
			v.SetString(long)
			check(path)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(path, v.Elem(), check)
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				v.SetBytes([]byte(long))
				check(path)
				break
			}
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(path+"[]", v.Index(0), check)
		case reflect.Map:
			of := func(key, value reflect.Value) {
				v.Set(reflect.MakeMap(v.Type()))
				v.SetMapIndex(key, value)
			}
			of(reflect.ValueOf(long), reflect.Zero(v.Type().Elem()))
			check(path + " key")
			value := reflect.New(v.Type().Elem()).Elem()
			fill(path+" value", value, func(path string) {
				of(reflect.ValueOf("k"), value)
				check(path)
			})
		case reflect.Struct:
			for i := range v.NumField() {
				if field := v.Type().Field(i); !slices.Contains(constant, field.Name) && field.Type != reflect.TypeFor[metav1.MicroTime]() {
					fill(path+"."+field.Name, v.Field(i), check)
				}
			}
		}
		v.Set(before)
	}
	var e auditinternal.Event
	checked := 0
	fill("", reflect.ValueOf(&e).Elem(), func(path string) {
		checked++
		if got := sizeOf(&e); got < eventOverhead+length {
			t.Errorf("%s of %d bytes: the event counts %d", path, length, got)
		}
	})
	if checked < 30 {
		t.Errorf("%d strings were checked", checked)
	}
	e = auditinternal.Event{SourceIPs: make([]string, 1000)}
	if got := sizeOf(&e); got < eventOverhead+16*1000 {
		t.Errorf("1000 empty strings count %d", got)
	}
}

// TestCloseDoesNotWaitForAHangingBackend longer than it was told to.
func TestCloseDoesNotWaitForAHangingBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := &recorder{hangs: make(chan struct{})}, newMetrics()
		a := &Auditor{metrics: m, cancel: func() {}, sinks: []sink{
			newQueue(r.backend(), limits{events: 10, bytes: 1 << 20, batch: 2, senders: 1}, m, slog.New(slog.DiscardHandler)),
		}}
		for i := range 3 {
			a.emit(event(i, ""))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		a.Close(ctx)
		if took := time.Since(begin); took != 6*time.Second {
			t.Errorf("the close took %v", took)
		}
		if n := lost(m, pluginBuffered); n != 3 {
			t.Errorf("%d events are lost, want 3", n)
		}
		close(r.hangs)
	})
}

// TestTruncation leaves objects out of events that are too large, for its backend only.
func TestTruncation(t *testing.T) {
	c := &Delivery{MaxEventBytes: 2000, MaxBatchBytes: 4000}
	var sent [][]*auditinternal.Event
	send := truncated(c, func(batch []*auditinternal.Event) map[string]int {
		sent = append(sent, batch)
		return map[string]int{pluginWebhook: 1}
	})
	small := event(1, `"small"`)
	large := event(2, `"`+strings.Repeat("x", 5000)+`"`)
	small.Level, large.Level = auditinternal.LevelRequest, auditinternal.LevelRequest
	hopeless := event(3, "")
	hopeless.RequestObject, hopeless.RequestURI = nil, strings.Repeat("x", 5000)
	lost := send([]*auditinternal.Event{small, large, hopeless})
	if lost[pluginTruncate] != 1 || lost[pluginWebhook] != len(sent) {
		t.Errorf("lost: %v", lost)
	}
	got := sent[0]
	if len(got) != 2 || got[0].RequestObject == nil || got[1].RequestObject != nil || got[1].Annotations[annotationTruncated] != "true" || large.RequestObject == nil {
		t.Errorf("sent: %+v", got)
	}
}
