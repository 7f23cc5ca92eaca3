package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/inflight"
	"github.com/levelwire/levelwire/server/internal/apiserver/reauthorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// maxWindowWatch is how long a window is followed.
const maxWindowWatch = 5 * time.Minute

// watchWindow follows a window of a list. It counts as a watch of its user, which has the right
// to list: list is what was authorized.
func (s *Server) watchWindow(w http.ResponseWriter, r *http.Request, q *request.Info, list auth.Attributes) error {
	if s.isStopping() {
		return status.ShuttingDown()
	}
	watch := list
	watch.Verb = request.VerbWatch
	if err := s.authorizeWithoutSlot(r, watch); err != nil {
		writeDenied(w, r, err)
		return nil
	}
	if !request.Offers(q.Resource, request.VerbWatch) {
		return status.MethodNotSupported(q.Resource, request.VerbWatch)
	}
	form, err := encoding.Negotiate(r, encoding.WindowOffer.For(q.Resource))
	if err != nil {
		return err
	}
	include, err := encoding.IncludeObject(q.Query)
	if err != nil {
		return err
	}
	if include == metav1.IncludeObject {
		return status.BadRequest("includeObject=%s: a window that is followed has no whole objects", include)
	}
	opts, window, err := s.windowOptions(r, q)
	if err != nil {
		return err
	}
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		if err := encoding.DiscardBody(w, r, s.config.MaxBodyBytes); err != nil {
			return err
		}
	}
	if !s.watches.TryAcquire(list.User, 1) {
		s.metrics.Rejected.Inc()
		return status.TooManyRequests("too many watches are open, of this user or of all: close some", 1)
	}
	defer s.watches.Release(list.User, 1)
	rows, err := s.holdWindow(list.User, window)
	if err != nil {
		return err
	}
	defer s.windowRows.Release(list.User, rows)
	selectors, err := s.holdSelectors(list.User, &opts)
	if err != nil {
		return err
	}
	defer s.selectors.Release(list.User, selectors)

	lifetime := maxWindowWatch
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds != 0 { // 0 is the default, as for watches
		lifetime = min(lifetime, time.Duration(min(max(*opts.TimeoutSeconds, 0), int64(maxWindowWatch/time.Second)))*time.Second)
	}
	opts.TimeoutSeconds = nil
	ctx, cancel := context.WithTimeout(r.Context(), lifetime)
	defer cancel()
	ended := &endedWatch{end: cancel}
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	record := request.RecordFrom(ctx)
	level, exempt := s.levelOf(&list)
	out := &windowStream{
		server: s, w: w, control: http.NewResponseController(w), window: window,
		user: list.User, slot: s.readSlots.Slot(ctx, list.User, s.flow(w, r, &list, s.readSeats)),
		task: &record.Task, level: level, exempt: exempt, computes: true,
		encoder: encoding.NewEventEncoder(s.verbs.Encoder(q.Resource, form), include), ctx: ctx,
	}
	if guarded, ok := w.(*request.Recorder); ok {
		guarded.GuardWrites(out.slot)
		defer guarded.GuardWrites(nil)
	}
	if s.open != nil {
		for i, right := range []*auth.Attributes{&list, &watch} {
			s.open.Register(ctx, &out.rights[i], ended, reauthorization.Rights{Watch: right, Impersonation: record.Impersonation})
			defer s.open.Unregister(&out.rights[i])
		}
	}
	err = s.windows.Follow(ctx, q.Scope(), &opts, window, out)
	if out.begun || ctx.Err() != nil || errors.Is(err, read.ErrClosed) {
		return out.end(err)
	}
	return err
}

// windowStream writes the changes of a window. It implements read.WindowReader.
type windowStream struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController
	window  read.Window
	user    auth.User
	slot    *inflight.Slot // its writes are guarded with it
	task    *runqueue.Task
	encoder encoding.EventEncoder
	rights  [2]reauthorization.Member
	ctx     context.Context

	level    runqueue.Level
	exempt   bool // from the run queue
	computes bool // the task has started, and not ended
	begun    bool
}

// Begin implements read.WindowReader.
func (o *windowStream) Begin() {
	if o.exempt || o.computes {
		return
	}
	o.task.Start(o.server.handlers, o.level, o.user.Name)
	o.computes = true
}

// Admit implements read.WindowReader: to read a list, and to encode it, takes the seats of a list.
func (o *windowStream) Admit(ctx context.Context) error {
	o.Begin()
	return o.slot.Wait(ctx)
}

// End implements read.WindowReader.
func (o *windowStream) End() {
	o.slot.Release()
	o.computes = false
}

// Send implements read.WindowReader.
func (o *windowStream) Send(change *read.WindowChange) error {
	for i := range o.rights {
		if err := o.rights[i].Err(); err != nil {
			return err
		}
	}
	if err := o.encoder.Prepare(o.ctx, change.Events); err != nil {
		return err
	}
	var out []byte // not kept: windows change seldom, and are many
	var err error
	for _, e := range change.Events {
		// A row has the object's age, so rows that others have made are not shared.
		if out, err = o.encoder.AppendEvent(o.ctx, out, e, false); err != nil {
			return err
		}
		o.task.Yield()
		if len(out) < encoding.WriteSize {
			continue
		}
		if err := o.write(out, false); err != nil {
			return err
		}
		if err := o.ctx.Err(); err != nil {
			return err
		}
		out = out[:0]
	}
	state := debugapi.WindowState{
		Offset: o.window.Offset, Total: change.Total, ResourceVersion: read.FormatResourceVersion(change.Revision),
	}
	if change.Order != nil {
		state.Order = namesOf(change.Order)
	}
	shown, err := json.Marshal(debugapi.WindowEvent{Type: debugapi.WindowEventType, Object: state})
	if err != nil {
		return err
	}
	out = append(append(out, shown...), '\n')
	o.End()
	return o.write(out, true)
}

// namesOf returns the objects as a WindowState has them.
func namesOf(objects []*watchcache.Object) []string {
	names := make([]string, len(objects))
	for i, object := range objects {
		if names[i] = object.Attributes.Name; object.Attributes.Namespace != "" {
			names[i] = object.Attributes.Namespace + "/" + names[i]
		}
	}
	return names
}

// write sends events. A client that does not read ends the stream after WriteTimeout.
func (o *windowStream) write(events []byte, flush bool) error {
	if !o.begun {
		o.begun = true
		header := o.w.Header()
		header.Set("Content-Type", o.encoder.Form().StreamType())
		header.Set("Cache-Control", "no-cache, private")
		header.Set("X-Content-Type-Options", "nosniff")
		o.w.WriteHeader(http.StatusOK)
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(o.server.config.WriteTimeout)) // an error: there are none, in tests
	_, err := o.w.Write(events)
	if err == nil && flush {
		err = o.control.Flush()
	}
	_ = o.control.SetWriteDeadline(time.Time{})
	return err
}

// end ends the answer, with an error for the client unless the end is an ordinary one.
func (o *windowStream) end(err error) error {
	for i := range o.rights {
		if withdrawn := o.rights[i].Err(); withdrawn != nil {
			err = withdrawn
		}
	}
	var answer []byte
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, read.ErrClosed) {
		var encodeErr error
		if answer, encodeErr = o.encoder.AppendError(nil, err); encodeErr != nil {
			return nil
		}
	}
	_ = o.write(answer, true) // a client that does not read it sees the stream end
	return nil
}
