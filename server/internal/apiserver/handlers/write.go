package handlers

import (
	"context"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/internal/processors"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// writer is one request that changes something: what its handler and the
// decoding of its body share.
type writer struct {
	registry   registry.Registry // the verbs on the objects that the request is about
	w          http.ResponseWriter
	r          *http.Request
	q          *request.Info
	opts       registry.WriteOptions
	body       []byte // never changed: objects share its memory
	mediaType  string // of body
	validation fieldValidation
}

// newCreator is the beginning of a POST. Kubernetes judges what stands around the object in
// another order for each verb: here the form of the answer, the media type, the size, the options.
func (h *Handlers) newCreator(w http.ResponseWriter, r *http.Request, q *request.Info) (*writer, error) {
	x, err := h.newWriter(w, r, q)
	if err != nil {
		return nil, err
	}
	if err := x.readMediaType(); err != nil {
		return nil, err
	}
	if err := x.readBody(h.config.MaxBodyBytes); err != nil {
		return nil, err
	}
	return x, x.readOptions(createOptions)
}

// newReplacer is the beginning of a PUT: form of the answer, size, options, media type.
func (h *Handlers) newReplacer(w http.ResponseWriter, r *http.Request, q *request.Info) (*writer, error) {
	x, err := h.newWriter(w, r, q)
	if err != nil {
		return nil, err
	}
	if err := x.readBody(h.config.MaxBodyBytes); err != nil {
		return nil, err
	}
	if err := x.readOptions(updateOptions); err != nil {
		return nil, err
	}
	return x, x.readMediaType()
}

// newWriter begins with what every write checks first. A server without a registry is read-only.
func (h *Handlers) newWriter(w http.ResponseWriter, r *http.Request, q *request.Info) (*writer, error) {
	if h.config.Registry == nil {
		return nil, status.MethodNotSupported(q.Resource, q.Verb)
	}
	// An answer that the client cannot read must be refused before anything
	// is written.
	if _, err := encoding.Negotiate(r, encoding.ObjectOffer); err != nil {
		return nil, err
	}
	x := &writer{registry: h.config.Registry.For(q.Resource), w: w, r: r, q: q}
	x.opts.AuthorizeCreate = func(ctx context.Context) error {
		return h.config.Authorizer.AuthorizeCreate(ctx, q.Authorized)
	}
	return x, nil
}

func (x *writer) readMediaType() (err error) {
	x.mediaType, err = encoding.ObjectMediaType(x.r)
	return err
}

func (x *writer) readBody(limit int64) (err error) {
	if x.body, err = encoding.ReadBody(x.w, x.r, limit); err == nil && len(x.body) >= largeBody {
		context.AfterFunc(x.r.Context(), processors.Computing()) // the context ends with the request
	}
	return err
}

// largeBody is from how many bytes on a body may be the work of milliseconds: a definition
// nested a thousand deep has 30 KB and takes 300 ms, a patch of 9,000 operations 90 ms.
const largeBody = 16 << 10

// readOptions reads the options that all writes but DELETE have in their query.
func (x *writer) readOptions(validate func(metav1.UpdateOptions) (string, field.ErrorList)) error {
	o := metav1.UpdateOptions{
		DryRun:          x.q.Query["dryRun"],
		FieldManager:    x.q.Query.Get("fieldManager"),
		FieldValidation: x.q.Query.Get("fieldValidation"),
	}
	if kind, errs := validate(o); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	x.opts.DryRun, x.opts.FieldManager = len(o.DryRun) > 0, manager(o.FieldManager, x.r.UserAgent())
	x.opts.Stated = registry.StatedOptions{FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
	x.validation = fieldValidation(o.FieldValidation)
	return nil
}

// manager returns the owner of what a request writes: the one that it states, or
// else the program that sends it, whose name its User-Agent begins with.
func manager(stated, userAgent string) string {
	if stated != "" {
		return stated
	}
	name, _, _ := strings.Cut(userAgent, "/")
	printable := make([]byte, 0, min(len(name), validation.FieldManagerMaxLength))
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if len(printable)+utf8.RuneLen(r) > validation.FieldManagerMaxLength {
			break
		}
		printable = utf8.AppendRune(printable, r)
	}
	return string(printable)
}

func createOptions(o metav1.UpdateOptions) (string, field.ErrorList) {
	return "CreateOptions", validation.ValidateCreateOptions(&metav1.CreateOptions{
		DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation,
	})
}

func updateOptions(o metav1.UpdateOptions) (string, field.ErrorList) {
	return "UpdateOptions", validation.ValidateUpdateOptions(&o)
}

// create answers POST to a collection.
func (h *Handlers) create(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	x, err := h.newCreator(w, r, q)
	if err != nil {
		return err
	}
	obj, err := x.decode()
	if err != nil {
		return err
	}
	result, err := x.registry.Create(r.Context(), q.Namespace, obj, x.opts)
	if err != nil {
		return err
	}
	return x.answer(http.StatusCreated, result)
}

// update answers PUT of an object.
func (h *Handlers) update(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	x, err := h.newReplacer(w, r, q)
	if err != nil {
		return err
	}
	replace, err := x.replacement()
	if err != nil {
		return err
	}
	result, err := x.registry.Update(r.Context(), q.Namespace, q.Name, replace, registry.UpdateOptions{WriteOptions: x.opts})
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, result)
}

// replacement returns an Updater that ignores the current object. The body is
// decoded at once, so that a malformed body is refused whether or not the object
// exists, and again for each further attempt, because each attempt owns its object.
func (x *writer) replacement() (registry.Updater, error) {
	first, err := x.decode()
	if err != nil {
		return nil, err
	}
	if err := x.matchPath(first); err != nil {
		return nil, err
	}
	return func(resource.Object) (resource.Object, error) {
		if obj := first; obj != nil {
			first = nil
			return obj, nil
		}
		obj, _, _, err := x.q.Resource.DecodeBodyInPlace(x.mediaType, x.body)
		return obj, err
	}, nil
}

// matchPath refuses an object that is not the one in the request's path.
func (x *writer) matchPath(obj metav1.Object) error {
	q := x.q
	if ns := obj.GetNamespace(); q.Resource.Namespaced && ns != "" && ns != q.Namespace {
		return status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	switch name := obj.GetName(); name {
	case q.Name:
	case "":
		return status.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", q.Name)
	default:
		return status.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", name, q.Name)
	}
	return nil
}

// answer writes the result of a write that left an object.
func (x *writer) answer(code int, result *registry.Result) error {
	if result.Created {
		code = http.StatusCreated
	}
	return encoding.WriteResult(x.w, x.r, x.q, code, result.Object, result.JSON)
}
