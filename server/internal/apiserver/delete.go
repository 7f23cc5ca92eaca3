package apiserver

import (
	"errors"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// delete answers DELETE of an object: with the object if it still exists or if
// its kind's strategy says ReturnDeleted, and with a Status otherwise.
func (s *Server) delete(w http.ResponseWriter, r *http.Request, q *request) error {
	reg, opts, err := s.deletion(w, r, q)
	if err != nil {
		return err
	}
	result, err := reg.Delete(r.Context(), q.namespace, q.name, opts)
	if err != nil {
		return err
	}
	return writeDeleted(w, r, q, result, opts)
}

func writeDeleted(w http.ResponseWriter, r *http.Request, q *request, result *registry.Result, opts *metav1.DeleteOptions) error {
	code := http.StatusOK
	// Kubernetes answers 202 only to clients that use the deprecated field.
	if orphan := opts.OrphanDependents; !result.Deleted && orphan != nil && !*orphan {
		code = http.StatusAccepted
	}
	if result.Status != nil {
		return writeObject(w, r, code, result.Status)
	}
	return writeResult(w, r, q, code, result.Object, result.JSON)
}

// deletion reads the options of a DELETE. A server without a registry is
// read-only.
func (s *Server) deletion(w http.ResponseWriter, r *http.Request, q *request) (reg registry.Registry, opts *metav1.DeleteOptions, err error) {
	if s.config.Registry == nil {
		return reg, nil, status.MethodNotSupported(q.resource, q.verb)
	}
	if _, err := negotiate(r, objectForm); err != nil {
		return reg, nil, err
	}
	opts, err = s.deleteOptions(w, r, q)
	return s.config.Registry.For(q.resource), opts, err
}

// deleteOptions reads the options in the body, and takes those that the body
// lacks from the query.
func (s *Server) deleteOptions(w http.ResponseWriter, r *http.Request, q *request) (*metav1.DeleteOptions, error) {
	body, err := s.readBody(w, r)
	if err != nil {
		return nil, err
	}
	opts := &metav1.DeleteOptions{}
	if len(body) > 0 {
		kind, err := bodyType(r)
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
		return errUnsupportedBody(media.MediaType)
	case errors.As(err, &kind):
		return status.BadRequest("decoded object cannot be converted to DeleteOptions: it is a %s", kind.Got.Kind)
	}
	return status.BadRequest("DeleteOptions cannot be read: %v", err)
}

func addDeleteQuery(opts *metav1.DeleteOptions, q *request) error {
	if len(opts.DryRun) == 0 {
		opts.DryRun = slices.Clone(q.query["dryRun"])
	}
	if q.query.Has("gracePeriodSeconds") && opts.GracePeriodSeconds == nil {
		seconds, err := intParameter(q.query, "gracePeriodSeconds")
		if err != nil {
			return err
		}
		opts.GracePeriodSeconds = &seconds
	}
	if opts.PropagationPolicy == nil && opts.OrphanDependents == nil {
		if q.query.Has("propagationPolicy") {
			policy := metav1.DeletionPropagation(q.query.Get("propagationPolicy"))
			opts.PropagationPolicy = &policy
		}
		if q.query.Has("orphanDependents") {
			orphan := isTrue(q.query, "orphanDependents")
			opts.OrphanDependents = &orphan
		}
	}
	addPreconditions(opts, q)
	return nil
}

func addPreconditions(opts *metav1.DeleteOptions, q *request) {
	uid, version := q.query.Get("preconditions.uid"), q.query.Get("preconditions.resourceVersion")
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
// selected objects as they were before.
func (s *Server) deleteCollection(w http.ResponseWriter, r *http.Request, q *request) error {
	form, err := negotiate(r, offerFor(listForm, q.resource))
	if err != nil {
		return err
	}
	include, err := includeObject(q.query)
	if err != nil {
		return err
	}
	reg, opts, err := s.deletion(w, r, q)
	if err != nil {
		return err
	}
	list, err := listOptions(q.query)
	if err != nil {
		return err
	}
	selection, err := q.scope().Selection(&list)
	if err != nil {
		return err
	}
	deleted, err := reg.DeleteCollection(r.Context(), q.namespace, selection, opts)
	if err != nil {
		return err
	}
	a := newAnswer(w, r, form.contentType())
	writer := listWriter{answer: a, presenter: s.presenter(q.resource, form), include: include}
	err = writer.write(read.Page{
		Items: slices.Values(deleted.Objects),
		Meta:  metav1.ListMeta{ResourceVersion: read.FormatResourceVersion(deleted.Revision)},
	})
	if err == nil {
		err = a.finish()
	}
	return a.release(err)
}
