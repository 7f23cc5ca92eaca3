package handlers

import (
	"errors"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
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

// deleteOptions reads the options in the body, and takes those that the body
// lacks from the query.
func (h *Handlers) deleteOptions(w http.ResponseWriter, r *http.Request, q *request.Info) (*metav1.DeleteOptions, error) {
	body, err := encoding.ReadBody(w, r, h.config.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	opts := &metav1.DeleteOptions{}
	if len(body) > 0 {
		kind, err := encoding.BodyMediaType(r)
		if err != nil {
			return nil, err
		}
		if opts, _, err = resource.DecodeDeleteOptions(kind, body); err != nil {
			return nil, deleteOptionsError(err)
		}
	}
	return opts, addDeleteQuery(opts, q)
}

func deleteOptionsError(err error) error {
	var media *resource.UnsupportedMediaTypeError
	var kind *resource.KindMismatchError
	switch {
	case errors.As(err, &media):
		return encoding.UnsupportedMediaType(media.MediaType)
	case errors.As(err, &kind):
		return status.BadRequest("decoded object cannot be converted to DeleteOptions: it is a %s", kind.Got.Kind)
	}
	return status.BadRequest("DeleteOptions cannot be read: %v", err)
}

func addDeleteQuery(opts *metav1.DeleteOptions, q *request.Info) error {
	if len(opts.DryRun) == 0 {
		opts.DryRun = slices.Clone(q.Query["dryRun"])
	}
	if q.Query.Has("gracePeriodSeconds") && opts.GracePeriodSeconds == nil {
		seconds, err := request.IntParameter(q.Query, "gracePeriodSeconds")
		if err != nil {
			return err
		}
		opts.GracePeriodSeconds = &seconds
	}
	if opts.PropagationPolicy == nil && opts.OrphanDependents == nil {
		if q.Query.Has("propagationPolicy") {
			policy := metav1.DeletionPropagation(q.Query.Get("propagationPolicy"))
			opts.PropagationPolicy = &policy
		}
		if q.Query.Has("orphanDependents") {
			orphan := request.IsTrue(q.Query, "orphanDependents")
			opts.OrphanDependents = &orphan
		}
	}
	addPreconditions(opts, q)
	return nil
}

func addPreconditions(opts *metav1.DeleteOptions, q *request.Info) {
	uid, version := q.Query.Get("preconditions.uid"), q.Query.Get("preconditions.resourceVersion")
	if opts.Preconditions != nil || uid == "" && version == "" {
		return
	}
	opts.Preconditions = &metav1.Preconditions{}
	if uid != "" {
		typed := types.UID(uid)
		opts.Preconditions.UID = &typed
	}
	if version != "" {
		opts.Preconditions.ResourceVersion = &version
	}
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
	reg, opts, err := h.deletion(w, r, q)
	if err != nil {
		return err
	}
	list, err := request.ListOptions(q.Query)
	if err != nil {
		return err
	}
	if list.Limit > 0 || list.Continue != "" {
		page, err := h.config.Reader.List(r.Context(), q.Scope(), &list)
		if err != nil {
			return err
		}
		if err := reg.DeleteEach(r.Context(), slices.Collect(page.Items), opts); err != nil {
			return err
		}
		return encoding.WriteList(w, r, h.Encoder(q.Resource, form), include, page)
	}
	selection, err := q.Scope().Selection(&list)
	if err != nil {
		return err
	}
	deleted, err := reg.DeleteCollection(r.Context(), q.Namespace, selection, opts)
	if err != nil {
		return err
	}
	return encoding.WriteList(w, r, h.Encoder(q.Resource, form), include, read.Page{
		Items: slices.Values(deleted.Objects),
		Meta:  metav1.ListMeta{ResourceVersion: read.FormatResourceVersion(deleted.Revision)},
	})
}
