package events

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/levelwire/levelwire/client"
)

// Limits of a Recorder's memory. An event beyond the queue's length is dropped
// and counted; an occurrence of an event that the Recorder no longer tracks
// starts a new Event object; longer messages are cut.
const (
	queueLength    = 1024
	rememberedMost = 4096
	messageMost    = 1024
	writeTimeout   = 10 * time.Second
)

// Regarding is the object an event is about. GVK must be given because
// decoded objects do not carry their kind.
type Regarding struct {
	GVK             schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
}

// About describes obj, which is of the given kind.
func About(gvk schema.GroupVersionKind, obj metav1.Object) Regarding {
	return Regarding{
		GVK: gvk, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
}

// Recorder writes events in the background, from Run. It is safe for
// concurrent use.
type Recorder struct {
	events    client.Resource[*corev1.Event]
	component string
	host      string
	log       *slog.Logger
	queue     chan occurrence
	dropped   atomic.Int64
	// seen and lastName are touched by Run only.
	seen     map[identity]written
	lastName int64
}

type occurrence struct {
	identity
	version string
	at      time.Time
}

// identity is what makes two occurrences the same event, counted rather than
// written again.
type identity struct {
	gvk                   schema.GroupVersionKind
	namespace, name       string
	uid                   types.UID
	kind, reason, message string
}

type written struct {
	name  string
	count int32
}

// New returns a recorder for a component, on a host if it runs on one.
func New(c *client.Client, component, host string, log *slog.Logger) *Recorder {
	return &Recorder{
		events: client.For[*corev1.Event](c), component: component, host: host, log: log,
		queue: make(chan occurrence, queueLength), seen: map[identity]written{},
	}
}

// Normal reports something that went as it should.
func (r *Recorder) Normal(about Regarding, reason, format string, args ...any) {
	r.enqueue(about, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

// Warning reports something that an operator may have to look at.
func (r *Recorder) Warning(about Regarding, reason, format string, args ...any) {
	r.enqueue(about, corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...))
}

// Dropped counts the events that found the queue full.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

func (r *Recorder) enqueue(about Regarding, kind, reason, message string) {
	if len(message) > messageMost {
		message = strings.ToValidUTF8(message[:messageMost-len("...")], "") + "..."
	}
	o := occurrence{
		identity: identity{about.GVK, about.Namespace, about.Name, about.UID, kind, reason, message},
		version:  about.ResourceVersion,
		at:       time.Now(),
	}
	select {
	case r.queue <- o:
	default:
		r.dropped.Add(1)
	}
}

// Run writes events until ctx ends. What is still queued then is dropped.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-r.queue:
			if err := r.write(ctx, o); err != nil && ctx.Err() == nil {
				r.log.Debug("event not written", "reason", o.reason, "object", o.namespace+"/"+o.name, "error", err)
			}
		}
	}
}

func (r *Recorder) write(ctx context.Context, o occurrence) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if earlier, ok := r.seen[o.identity]; ok {
		earlier.count++
		err := r.count(ctx, o, earlier)
		if err == nil {
			r.seen[o.identity] = earlier
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		delete(r.seen, o.identity) // it has expired on the server
	}
	event := r.object(o)
	if _, err := r.events.Namespace(event.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return err
	}
	if len(r.seen) >= rememberedMost {
		clear(r.seen)
	}
	r.seen[o.identity] = written{name: event.Name, count: 1}
	return nil
}

// count raises the counter of an event written before.
func (r *Recorder) count(ctx context.Context, o occurrence, earlier written) error {
	patch, err := json.Marshal(map[string]any{
		"count":         earlier.count,
		"lastTimestamp": metav1.NewTime(o.at),
	})
	if err != nil {
		return err
	}
	_, err = r.events.Namespace(eventNamespace(o.namespace)).Patch(ctx, earlier.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// nameFor returns a name that no other event about the object has: the time in
// nanoseconds, increased when two come in the same one. Names of objects may be
// as long as those of events, so they are cut.
func (r *Recorder) nameFor(o occurrence) string {
	r.lastName = max(r.lastName+1, o.at.UnixNano())
	suffix := fmt.Sprintf(".%x", r.lastName)
	about := o.name
	if most := validation.DNS1123SubdomainMaxLength - len(suffix); len(about) > most {
		about = strings.TrimRight(about[:most], ".-")
	}
	return about + suffix
}

func (r *Recorder) object(o occurrence) *corev1.Event {
	at := metav1.NewTime(o.at)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: eventNamespace(o.namespace),
			Name:      r.nameFor(o),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: o.gvk.GroupVersion().String(), Kind: o.gvk.Kind,
			Namespace: o.namespace, Name: o.name, UID: o.uid, ResourceVersion: o.version,
		},
		Type: o.kind, Reason: o.reason, Message: o.message,
		Source:              corev1.EventSource{Component: r.component, Host: r.host},
		ReportingController: r.component,
		ReportingInstance:   r.host,
		FirstTimestamp:      at, LastTimestamp: at, Count: 1,
	}
}

// eventNamespace is where events about cluster-scoped objects are kept.
func eventNamespace(namespace string) string {
	if namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}
