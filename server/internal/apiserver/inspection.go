package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/handlers"
	"github.com/levelwire/levelwire/server/internal/apiserver/inspect"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// inspectionVerbs are the verbs that the paths of the debug API need at the path of the API that
// follows them.
var inspectionVerbs = map[string]string{
	debugapi.EventsPath:  request.VerbWatch,
	debugapi.HistoryPath: request.VerbGet,
	debugapi.WindowPath:  request.VerbList,
}

// inspectionPath splits a path of the debug API that is about objects.
func inspectionPath(path string) (kind string, t request.Path, ok bool) {
	rest, ok := strings.CutPrefix(path, debugapi.Prefix)
	if !ok {
		return "", t, false
	}
	name, rest, _ := strings.Cut(rest, "/")
	kind = debugapi.Prefix + name
	if inspectionVerbs[kind] == "" {
		return "", t, false
	}
	t, ok = request.ParsePath("/" + rest)
	return kind, t, ok && !t.Watch && t.Subresource == "" && (t.Name != "") == (kind == debugapi.HistoryPath)
}

// watchesWindow reports whether a request of the debug API asks to follow a window.
func watchesWindow(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, debugapi.WindowPath+"/") && request.IsTrue(r.URL.Query(), "watch")
}

// serveInspection answers what the debug API says of objects.
func (s *Server) serveInspection(w http.ResponseWriter, r *http.Request, t *target) {
	kind, path, _ := inspectionPath(r.URL.Path)
	if err := s.authorizeTarget(r, t); err != nil {
		writeDenied(w, r, err)
		return
	}
	if err := s.inspection(w, r, kind, path, t); err != nil {
		encoding.WriteError(w, r, err)
	}
}

func (s *Server) inspection(w http.ResponseWriter, r *http.Request, kind string, path request.Path, t *target) error {
	if r.Method != http.MethodGet {
		return status.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the debug API answers GET")
	}
	q, err := s.resolve(r, path)
	if err != nil {
		return err
	}
	if verb := inspectionVerbs[kind]; !request.Offers(q.Resource, verb) || handlers.IsUnstored(q.Resource) {
		return status.MethodNotSupported(q.Resource, verb)
	}
	switch kind {
	case debugapi.EventsPath:
		return s.inspectEvents(w, r, q)
	case debugapi.HistoryPath:
		return s.inspectHistory(w, r, q, t.attributes)
	default:
		if watchesWindow(r) {
			return s.watchWindow(w, r, q, t.attributes)
		}
		return s.window(w, r, q)
	}
}

// The limits of what one request of the debug API gets.
const (
	defaultEvents, maxEvents     = 500, 10_000
	defaultVersions, maxVersions = 50, 1_000
	defaultWindow, maxWindow     = 50, 1_000
)

func (s *Server) inspectEvents(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	limit, err := inspect.Number(r, "limit", defaultEvents, maxEvents)
	if err != nil {
		return err
	}
	after, err := request.IntParameter(q.Query, "after")
	if err != nil {
		return err
	}
	through, err := request.IntParameter(q.Query, "through")
	if err != nil {
		return err
	}
	changes, err := s.changes(r, q, after, through, limit)
	if err != nil {
		return err
	}
	out := debugapi.Events{Extent: extentOf(&changes), Items: []debugapi.Event{}}
	for _, change := range changes.Items {
		event := debugapi.Event{Revision: int64(change.Revision), Time: inspect.Moment(change.Arrived), Type: change.Type.String()}
		if change.Previous != nil {
			event.Before = int64(change.Previous.Revision)
			event.Namespace, event.Name = change.Previous.Attributes.Namespace, change.Previous.Attributes.Name
		} else {
			event.Namespace, event.Name = change.Object.Attributes.Namespace, change.Object.Attributes.Name
		}
		out.Items = append(out.Items, event)
	}
	return inspect.Write(w, r, out)
}

// changes reads the log of a collection or of an object.
func (s *Server) changes(r *http.Request, q *request.Info, after, through int64, limit int) (read.Changes, error) {
	opts, err := request.ListOptions(q.Query)
	if err != nil {
		return read.Changes{}, err
	}
	return s.reader.Changes(r.Context(), q.Scope(), &opts, storage.Revision(after), storage.Revision(through), limit)
}

func extentOf(changes *read.Changes) debugapi.Extent {
	return debugapi.Extent{
		Now: inspect.Rounded(time.Now()), Oldest: int64(changes.Oldest), Revision: int64(changes.Revision), Truncated: changes.More,
	}
}

// inspectHistory answers with the versions of an object. get is what was authorized: it shows
// what the object is. What it was is for users who may watch it.
func (s *Server) inspectHistory(w http.ResponseWriter, r *http.Request, q *request.Info, get auth.Attributes) error {
	watch := get
	watch.Verb = request.VerbWatch
	if err := s.authorize(r, watch); err != nil {
		writeDenied(w, r, err)
		return nil
	}
	limit, err := inspect.Number(r, "limit", defaultVersions, maxVersions)
	if err != nil {
		return err
	}
	changes, err := s.changes(r, q, 0, 0, limit)
	if err != nil {
		return err
	}
	keepLatestObject(&changes)
	boundHistory(&changes)
	out := debugapi.History{Extent: extentOf(&changes), Items: []debugapi.Version{}}
	encoder := s.verbs.Encoder(q.Resource, encoding.Form{})
	add := func(version debugapi.Version, object *watchcache.Object) error {
		if object != nil {
			if version.Object, err = encoder.Document(r.Context(), object, nil); err != nil {
				return err
			}
			version.Object = json.RawMessage(strings.TrimSpace(string(version.Object)))
		}
		out.Items = append(out.Items, version)
		return nil
	}
	if len(changes.Items) == 0 {
		object, err := s.reader.Get(r.Context(), q.Scope(), "0")
		if err != nil {
			return err
		}
		if err := add(debugapi.Version{Revision: int64(object.Revision)}, object); err != nil {
			return err
		}
	} else if first := changes.Items[0].Previous; first != nil && !changes.More {
		if err := add(debugapi.Version{Revision: int64(first.Revision)}, first); err != nil {
			return err
		}
	}
	for _, change := range changes.Items {
		version := debugapi.Version{Revision: int64(change.Revision), Time: inspect.Moment(change.Arrived), Type: change.Type.String()}
		if err := add(version, change.Object); err != nil {
			return err
		}
	}
	return inspect.Write(w, r, out)
}

// keepLatestObject leaves out what was before the latest object of the name: another one, which was
// not meant for the users of this one, perhaps.
func keepLatestObject(changes *read.Changes) {
	if len(changes.Items) == 0 {
		return
	}
	uidAfter := func(change watchcache.LoggedChange) string {
		if change.Object != nil {
			return change.Object.Attributes.UID
		}
		return change.Previous.Attributes.UID
	}
	uid := uidAfter(changes.Items[len(changes.Items)-1])
	for i, change := range slices.Backward(changes.Items) {
		if uidAfter(change) != uid {
			changes.Items, changes.More = changes.Items[i+1:], false
			break
		}
	}
	// One change may have put an object in the place of another.
	if first := &changes.Items[0]; first.Previous != nil && first.Previous.Attributes.UID != uid {
		first.Previous, changes.More = nil, false
	}
}

// maxHistoryBytes bounds the objects of an answer: it is made in memory, and a log may have
// hundreds of versions of a large object.
const maxHistoryBytes = 16 << 20

// boundHistory leaves out the oldest changes beyond maxHistoryBytes, and keeps the latest one.
func boundHistory(changes *read.Changes) {
	bytes := 0
	for i, change := range slices.Backward(changes.Items) {
		if change.Object == nil {
			continue
		}
		if bytes += change.Object.Size(); bytes > maxHistoryBytes && i < len(changes.Items)-1 {
			changes.Items, changes.More = changes.Items[i+1:], true
			return
		}
	}
}

// window answers with a part of a list, by the numbers of its objects.
func (s *Server) window(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	form, err := encoding.Negotiate(r, encoding.ListOffer.For(q.Resource))
	if err != nil {
		return err
	}
	include, err := encoding.IncludeObject(q.Query)
	if err != nil {
		return err
	}
	opts, window, err := s.windowOptions(r, q)
	if err != nil {
		return err
	}
	page, total, err := s.windows.Read(r.Context(), q.Scope(), &opts, window)
	if err != nil {
		return err
	}
	encoder := s.verbs.Encoder(q.Resource, form)
	if err := encoder.Prepare(r.Context(), page.Items); err != nil {
		return err
	}
	w.Header().Set(debugapi.TotalHeader, strconv.Itoa(total))
	w.Header().Set(debugapi.OffsetHeader, strconv.Itoa(window.Offset))
	return encoding.WriteList(w, r, encoder, include, page)
}

// windowOptions reads which window of which list is wanted.
func (s *Server) windowOptions(r *http.Request, q *request.Info) (opts metav1.ListOptions, window read.Window, err error) {
	window = read.Window{SortBy: q.Query.Get("sortBy"), Descending: request.IsTrue(q.Query, "descending"), User: q.User.Name}
	if window.Limit, err = inspect.Number(r, "limit", defaultWindow, maxWindow); err != nil {
		return opts, window, err
	}
	if window.Offset, err = inspect.Number(r, "offset", 0, 1<<40); err != nil {
		return opts, window, err
	}
	if opts, err = request.ListOptions(q.Query); err != nil {
		return opts, window, err
	}
	opts.Limit = 0
	if text := q.Query.Get("moment"); text != "" {
		err = s.atMoment(q, text, &opts)
	}
	return opts, window, err
}

// atMoment makes the options those of a list at the revision of a moment.
func (s *Server) atMoment(q *request.Info, text string, opts *metav1.ListOptions) error {
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return status.BadRequest("moment=%q: it is a time in RFC 3339, such as 2026-01-02T15:04:05.6Z", text)
	}
	if opts.ResourceVersion != "" {
		return status.BadRequest("moment and resourceVersion: one of them says which state is wanted")
	}
	revision, err := s.reader.RevisionAt(q.Scope(), moment)
	if err != nil {
		return err
	}
	opts.ResourceVersion, opts.ResourceVersionMatch = read.FormatResourceVersion(revision), metav1.ResourceVersionMatchExact
	return nil
}
