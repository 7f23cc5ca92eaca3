package handlers

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// delete answers DELETE of an object: with the object if it still exists or if
// its kind's strategy says ReturnDeleted, and with a Status otherwise.
func (h *Handlers) delete(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	reg, opts, err := h.deletion(w, r, q)
	if err != nil {
		return err
	}
	result, err := reg.Delete(r.Context(), q.Namespace, q.Name, opts)
	if err != nil {
		return err
	}
	return writeDeleted(w, r, q, result, opts)
}

func writeDeleted(w http.ResponseWriter, r *http.Request, q *request.Info, result *registry.Result, opts *metav1.DeleteOptions) error {
	code := http.StatusOK
	// Kubernetes answers 202 only to clients that use the deprecated field.
	if orphan := opts.OrphanDependents; !result.Deleted && orphan != nil && !*orphan {
		code = http.StatusAccepted
	}
	if result.Status != nil {
		return encoding.WriteObject(w, r, code, result.Status)
	}
	return encoding.WriteResult(w, r, q, code, result.Object, result.JSON)
}

// deletion reads the options of a DELETE. A server without a registry is
// read-only.
func (h *Handlers) deletion(w http.ResponseWriter, r *http.Request, q *request.Info) (reg registry.Registry, opts *metav1.DeleteOptions, err error) {
	if h.config.Registry == nil {
		return reg, nil, status.MethodNotSupported(q.Resource, q.Verb)
	}
	if _, err := encoding.Negotiate(r, encoding.ObjectOffer); err != nil {
		return reg, nil, err
	}
	opts, err = h.deleteOptions(w, r, q)
	return h.config.Registry.For(q.Resource), opts, err
}

// deleteOptions reads the options in the body, or, of a request without one, in the query. As in
// kube-apiserver, the query of a request with a body has no options, but for a dry run: kube-apiserver
// deletes then what the client wanted to keep.
func (h *Handlers) deleteOptions(w http.ResponseWriter, r *http.Request, q *request.Info) (*metav1.DeleteOptions, error) {
	body, err := encoding.ReadBody(w, r, h.config.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return queryDeleteOptions(q)
	}
	kind, err := encoding.BodyMediaType(r)
	if err != nil {
		return nil, err
	}
	opts, _, err := resource.DecodeDeleteOptions(kind, body)
	if err != nil {
		return nil, deleteOptionsError(err)
	}
	if len(opts.DryRun) == 0 {
		opts.DryRun = slices.Clone(q.Query["dryRun"])
	}
	return opts, nil
}

// queryDeleteOptions reads the options in the query, which has the members of the preconditions as
// uid and resourceVersion. That of a collection's list is a precondition of each object, too, as in
// kube-apiserver.
func queryDeleteOptions(q *request.Info) (*metav1.DeleteOptions, error) {
	opts := &metav1.DeleteOptions{}
	if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&q.Query, opts, nil); err != nil {
		return nil, status.BadRequest("%v", err)
	}
	opts.DryRun = slices.Clone(opts.DryRun) // of the query
	return opts, nil
}

func deleteOptionsError(err error) error {
	var media *resource.UnsupportedMediaTypeError
	var kind *resource.KindMismatchError
	switch {
	case errors.As(err, &media):
		return encoding.UnsupportedMediaType()
	case errors.As(err, &kind):
		gv := kind.Got.GroupVersion()
		if gv.Empty() {
			gv = metav1.SchemeGroupVersion
		}
		if gv.Version == "v1" && kind.Got.Kind == "Status" { // which is of no group
			return status.BadRequest("converting (v1.Status) to (v1.DeleteOptions): unknown conversion")
		}
		return status.BadRequest("%v", notRegistered(gv.WithKind(kind.Got.Kind)))
	}
	return status.BadRequest("%v", err)
}

// deleteCollection answers DELETE of a collection with the list of the
// selected objects as they were before. With a limit or a continue token it deletes one
// page of them, as kube-apiserver does, and the list has the token of the next.
func (h *Handlers) deleteCollection(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	form, err := encoding.Negotiate(r, encoding.ListOffer.For(q.Resource))
	if err != nil {
		return err
	}
	include, err := encoding.IncludeObject(q.Query)
	if err != nil {
		return err
	}
	list, err := request.ListOptions(q.Query)
	if err != nil {
		return err
	}
	selection, err := q.Scope().Selection(&list)
	if err != nil {
		return err
	}
	reg, opts, err := h.deletion(w, r, q)
	if err != nil {
		return err
	}
	page, err := h.deleteListed(r.Context(), q, reg, opts, &list, selection)
	if err != nil {
		return err
	}
	return encoding.WriteList(w, r, h.Encoder(q.Resource, form), include, page)
}

// deleteListed deletes what a list with the same options would show, and returns it. kube-apiserver
// lists in pages, so that a resourceVersion alone is one at which the list is, as of every list with a limit.
func (h *Handlers) deleteListed(
	ctx context.Context, q *request.Info, reg registry.Registry, opts *metav1.DeleteOptions, list *metav1.ListOptions, selection *watchcache.Selection,
) (page read.Page, err error) {
	if list.Limit <= 0 && list.Continue == "" && list.ResourceVersion == "" {
		deleted, err := reg.DeleteCollection(ctx, q.Namespace, selection, opts)
		if err != nil {
			return page, err
		}
		return read.Page{
			Items: slices.Values(deleted.Objects),
			Meta:  metav1.ListMeta{ResourceVersion: read.FormatResourceVersion(deleted.Revision)},
		}, nil
	}
	if list.Limit == 0 {
		list.Limit = math.MaxInt64
	}
	err = reg.DeleteListed(ctx, opts, func() ([]*watchcache.Object, error) {
		if page, err = h.config.Reader.List(ctx, q.Scope(), list); err != nil {
			return nil, err
		}
		return slices.Collect(page.Items), nil
	})
	return page, err
}
