package apiserver

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/apiserver/audit"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/tracing"
)

// auditID returns the identity of a request in its answer and in the audit log.
func (s *Server) auditID(r *http.Request) string {
	if s.config.Audit == nil {
		return uuid.NewString()
	}
	return audit.ID(r, uuid.NewString)
}

// beginAudit begins the audit of a request if the policy has one for it. refused is the
// error of its authentication. An error is the answer to a request that must not be served.
func (s *Server) beginAudit(r *http.Request, record *request.Record, user auth.User, refused error, id string, start time.Time) error {
	authenticated := time.Since(start)
	t := s.target(r, user)
	q := s.config.Audit.Begin(r, audit.Attributes{Attributes: t.attributes, Long: t.isLong(r)}, id, start)
	if q == nil {
		record.BeginAudit(nil)
		return nil
	}
	record.BeginAudit(q)
	q.Took(reporter.Authentication, authenticated)
	if refused != nil {
		q.NotAuthenticated(r)
		return nil
	}
	if !q.Received() {
		record.Audit = nil
		return apierrors.NewInternalError(errors.New("the audit event of the request could not be stored"))
	}
	return nil
}

// auditImpersonation notes the user that an audited request acts as, if it is another one,
// and the verb of constrained impersonation that allowed it.
func auditImpersonation(record *request.Record, constraint string) {
	if record.Impersonation == nil {
		return
	}
	if q, ok := record.Audit.(*audit.Request); ok {
		q.Impersonates(record.User, constraint)
	}
}

// auditPanic ends the audit of a request that has met a bug.
func auditPanic(record *request.Record, reason any) {
	if q, ok := record.Audit.(*audit.Request); ok {
		q.Panicked(reason)
	}
}

// completeAudit ends the audit of a request, if it is audited.
func completeAudit(header http.Header, record *request.Record) {
	if q, ok := record.Audit.(*audit.Request); ok {
		q.Completed(header)
	}
}

// authorize returns nil if a request is allowed, and the error for the client otherwise.
func (s *Server) authorize(r *http.Request, attributes auth.Attributes) error {
	ctx := r.Context()
	var span trace.Span
	if s.config.Tracer != nil {
		ctx, span = tracing.Start(ctx, "authorization")
	}
	record := request.RecordFrom(r.Context())
	deciding := record.Measure(reporter.Authorization)
	reason, denied := s.authorizer.AuthorizeRequest(ctx, attributes)
	deciding.End()
	if span != nil {
		tracing.End(span, denied)
	}
	auditDecision(record, denied == nil, reason)
	return denied
}

// authorizeNow is authorize for a request that must not wait for a decision.
func (s *Server) authorizeNow(r *http.Request, attributes auth.Attributes) error {
	denied := s.authorizer.AuthorizeNow(r.Context(), attributes)
	auditDecision(request.RecordFrom(r.Context()), denied == nil, "")
	return denied
}

func auditDecision(record *request.Record, allowed bool, reason string) {
	if record.Audit != nil {
		record.Audit.Authorized(allowed, reason)
	}
}
