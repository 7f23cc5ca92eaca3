package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/internal/applybody"
)

// Apply creates an object or changes it, so that it has the fields of obj, and
// returns the result (server-side apply). The field manager owns these fields
// from then on: what it applied before and leaves out now is removed, and fields
// of other managers stay.
//
// obj is a Go struct of the API, an apply configuration of client-go
// (applyconfigurations/apps/v1 and others), or *unstructured.Unstructured. It
// must be new, with the fields that the manager wants and no others: an object
// that a server sent, with managedFields or a creationTimestamp, is refused. Name and namespace are
// the object's; the namespace may be the endpoint's instead. Apply does not
// change obj.
//
// Of a struct, the fields with Go's zero value are not sent, and not owned: an
// empty status or a targetPort of 0 would otherwise be. To apply a zero value
// set it behind a pointer (replicas: 0), as an element or an entry, or use an
// apply configuration or unstructured. This holds for a required empty struct, too,
// such as podSelector of a NetworkPolicy.
//
// opts.FieldManager, or that of [Resource.FieldManager] or [Options], is required. Fields
// that another manager owns with another value are an [*ApplyConflictError], unless opts.Force takes them over.
func (r Resource[T]) Apply(ctx context.Context, obj any, opts metav1.ApplyOptions) (T, error) {
	return r.apply(ctx, obj, "", opts)
}

// ApplyStatus is [Resource.Apply] for the status of an existing object: the
// server ignores all other fields.
func (r Resource[T]) ApplyStatus(ctx context.Context, obj any, opts metav1.ApplyOptions) (T, error) {
	return r.apply(ctx, obj, "status", opts)
}

func (r Resource[T]) apply(ctx context.Context, obj any, subresource string, opts metav1.ApplyOptions) (T, error) {
	var none T
	if opts.FieldManager == "" && r.writes.fieldManager == "" {
		return none, r.refused("apply", errors.New("ApplyOptions.FieldManager is empty: set the name under which this program owns fields, there or in client.Options"))
	}
	body, err := applybody.Of(r.client.Scheme(), obj, r.mapping.Kind)
	if err != nil {
		return none, r.refused("apply", err)
	}
	switch {
	case r.namespace == "":
		r.namespace = body.Namespace
	case body.Namespace != "" && body.Namespace != r.namespace:
		return none, r.refused("apply", fmt.Errorf("the object's namespace %q is not the endpoint's %q", body.Namespace, r.namespace))
	}
	query := opts.ToPatchOptions()
	result, err := r.object(ctx, call{verb: "apply", method: http.MethodPatch, name: body.Name, named: true,
		subresource: subresource, query: &query, raw: body.JSON, contentType: string(types.ApplyYAMLPatchType)})
	resource := r.gvr.Resource
	if subresource != "" {
		resource += "/" + subresource
	}
	return result, applyError(resource+" "+strings.TrimPrefix(r.namespace+"/"+body.Name, "/"), err)
}

// refused is the error of a call that is not sent.
func (r Resource[T]) refused(verb string, err error) error {
	what := r.gvr.Resource
	if what == "" {
		what = reflect.TypeFor[T]().String() // a type that is not registered
	}
	return fmt.Errorf("%s %s: %w", verb, what, err)
}

// ApplyConflictError is the error of [Resource.Apply] when other managers own
// fields with other values. The caller may apply with Force, which takes the
// fields over, apply without them, which leaves them to the other managers, or
// apply their present values, which shares them. apierrors.IsConflict is true
// for it.
type ApplyConflictError struct {
	Conflicts []FieldConflict
	what      string // the resource and the object, for Error
	err       error  // the server's answer
}

// FieldConflict is a field that another manager owns.
type FieldConflict struct {
	// Field is its path, ".spec.replicas" for instance. Elements of lists are
	// named by their keys: .spec.containers[name="web"].image.
	Field string
	// Manager owns it. It is empty if the server does not say.
	Manager string
	// Detail is the server's sentence: it adds how and when the manager wrote.
	Detail string
}

// Error names the object, and lists each manager with the fields that it owns.
func (e *ApplyConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "apply %s: ", e.what)
	b.WriteString("other field managers own what is applied with another value: ")
	for n, c := range e.Conflicts {
		if n > 0 {
			b.WriteString(", ")
		}
		manager := strconv.Quote(c.Manager)
		if c.Manager == "" {
			manager = c.Detail
		}
		fmt.Fprintf(&b, "%s (%s)", c.Field, manager)
	}
	b.WriteString("; apply with Force to take the fields over, or without these fields to leave them")
	return b.String()
}

// Unwrap returns the server's answer, an *apierrors.StatusError.
func (e *ApplyConflictError) Unwrap() error { return e.err }

// applyError returns an ApplyConflictError for a conflict about fields, and any
// other error as it is. A conflict about a resourceVersion has no such causes.
func applyError(what string, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	conflict := &ApplyConflictError{what: what, err: err}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			conflict.Conflicts = append(conflict.Conflicts, FieldConflict{Field: cause.Field, Manager: managerIn(cause.Message), Detail: cause.Message})
		}
	}
	if len(conflict.Conflicts) == 0 {
		return err
	}
	return conflict
}

// managerIn reads the manager out of a sentence such as
//
//	conflict with "kubectl" using apps/v1 at 2024-01-01T00:00:00Z
func managerIn(message string) string {
	quoted, ok := strings.CutPrefix(message, "conflict with ")
	if !ok {
		return ""
	}
	prefix, err := strconv.QuotedPrefix(quoted)
	if err != nil {
		return ""
	}
	manager, _ := strconv.Unquote(prefix) // QuotedPrefix has checked it
	return manager
}
