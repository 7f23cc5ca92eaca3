package handlers

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/authorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/componentstatus"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/metrics"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Handler answers one request. If it returns an error, it has not written anything,
// and the caller writes the error as a Status.
type Handler func(w http.ResponseWriter, r *http.Request, q *request.Info) error

// Config is what Handlers call.
type Config struct {
	// Reader performs the reads, and Registry the writes. Without a Registry nothing can be
	// written.
	Reader   *read.Reader
	Registry *registry.Set
	// ReadOnly refuses all writes, also with a Registry. Reviews are answered.
	ReadOnly bool
	// Authenticator answers reviews of tokens, and Authorizer those of rights.
	Authenticator *authentication.Authenticator
	Authorizer    *authorization.Authorizer
	// Components are what component statuses say how they are.
	Components componentstatus.Components
	// Issuer answers requests for tokens of service accounts; nil refuses them.
	Issuer authentication.TokenIssuer
	// MaxBodyBytes bounds a request body.
	MaxBodyBytes int64
	// Streams are the open watches, one of which a list may name.
	Streams *watchstream.Streams
	Metrics *metrics.Metrics
}

// Handlers has the handlers of all verbs but watch. It is safe for concurrent use.
type Handlers struct{ config Config }

// New returns the handlers.
func New(config Config) *Handlers { return &Handlers{config} }

// Encoder returns the encoder of an answer.
func (h *Handlers) Encoder(res *resource.Resource, form encoding.Form) encoding.Encoder {
	return encoding.NewEncoder(res, form, h.config.Metrics.CountEncode)
}

// For returns the handler of a verb on a resource.
func (h *Handlers) For(q *request.Info) Handler {
	if h.config.ReadOnly && !isRead(q) {
		return refuse(status.ReadOnly())
	}
	if q.Subresource != "" {
		return h.subresourceHandler(q)
	}
	switch q.Verb {
	case request.VerbGet:
		return h.get
	case request.VerbList:
		return h.list
	case request.VerbCreate:
		return h.creation(q.Resource)
	case request.VerbUpdate:
		return h.update
	case request.VerbPatch:
		return h.patch
	case request.VerbDelete:
		return h.delete
	case request.VerbDeleteCollection:
		return h.deleteCollection
	}
	return refuse(status.MethodNotSupported(q.Resource, q.Verb))
}

// creation returns the handler of the creates of a resource.
func (h *Handlers) creation(res *resource.Resource) Handler {
	switch {
	case res == bindings:
		return h.bind
	case isReview(res):
		return h.createReview
	}
	return h.create
}

// isRead reports whether a request writes nothing.
func isRead(q *request.Info) bool {
	switch q.Verb {
	case request.VerbGet, request.VerbList, request.VerbWatch:
		return true
	case request.VerbCreate:
		return q.Subresource == "" && isReview(q.Resource)
	}
	return false
}

// subresourceHandler returns the handler of a subresource. Those that the kubelets
// of real nodes would answer are refused.
func (h *Handlers) subresourceHandler(q *request.Info) Handler {
	if err := refusedSubresource(q); err != nil {
		return refuse(err)
	}
	switch {
	case q.Verb == request.VerbGet && q.Subresource == "status" && q.Resource.Status:
		return h.get
	case q.Verb == request.VerbGet:
		return h.getSubresource
	case q.Verb == request.VerbCreate:
		return h.createSubresource
	case q.Verb == request.VerbUpdate:
		return h.updateSubresource
	case q.Verb == request.VerbPatch:
		return h.patchSubresource
	}
	return refuse(status.MethodNotSupported(q.Resource, q.Verb))
}

func refuse(err error) Handler {
	return func(http.ResponseWriter, *http.Request, *request.Info) error { return err }
}

// refusedSubresource returns the refusal of a subresource that cannot exist because
// pods are simulated; nil for any other.
func refusedSubresource(q *request.Info) error {
	if q.Resource.Group != "" || q.Resource.Version != "v1" {
		return nil
	}
	switch q.Resource.Plural {
	case "pods", "nodes", "services":
	default:
		return nil
	}
	switch q.Subresource {
	case "log":
		return status.BadRequest("logs are not available: Levelwire's kubelets simulate their pods, and no container writes any")
	case "exec", "attach", "portforward":
		return status.BadRequest("%s is not available: Levelwire's kubelets simulate their pods, and no container runs", q.Subresource)
	case "proxy":
		return status.BadRequest("proxy is not available: Levelwire's kubelets simulate their pods, and nothing listens behind %s %q",
			q.Resource.Singular, q.Name)
	}
	return nil
}
