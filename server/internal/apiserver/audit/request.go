package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
)

// The annotations that the authorization of a request leaves, as in Kubernetes.
const (
	annotationDecision  = "authorization.k8s.io/decision"
	annotationReason    = "authorization.k8s.io/reason"
	annotationTruncated = "audit.k8s.io/truncated"
	// prefixLatency is that of how long a request took that was slow, and its parts.
	prefixLatency = "apiserver.latency.k8s.io/"
	// prefixPatch is that of the patches of webhooks, which are parts of objects.
	prefixPatch = "patch.webhook.admission.k8s.io/"
)

// partNames are the names of the parts in the annotations, as in Kubernetes.
var partNames = [reporter.Parts]string{
	reporter.Authentication: "authentication", reporter.Impersonation: "impersonation", reporter.Authorization: "authorization",
	reporter.QueueWait: "apf-queue-wait", reporter.MutatingWebhook: "mutating-webhook", reporter.ValidatingWebhook: "validating-webhook",
	reporter.Storage: "etcd", reporter.Serialization: "serialize-response-object", reporter.ResponseWrite: "response-write",
}

const (
	// maxUserAgent, maxAuditID and maxSourceIPs bound what a client can write into each
	// event.
	maxUserAgent = 1024
	maxAuditID   = 64
	maxSourceIPs = 16
	// maxResponse bounds how much of an answer is kept for its event. An object in a
	// larger answer is left out, and the event says so.
	maxResponse = 4 << 20
	// slow is how long a request takes at least whose event says how long it took.
	slow = 500 * time.Millisecond
)

// Request is one audited request. It belongs to the goroutine that serves the request.
type Request struct {
	auditor *Auditor
	config  audit.RequestAuditConfig
	event   auditinternal.Event // what is known so far
	long    bool                // a watch
	refused bool                // the credentials were refused
	started bool                // an answer has begun
	ended   bool

	times [reporter.Parts]time.Duration

	onResource bool
	response   []byte // of what was answered; only at the level RequestResponse
	tooLarge   bool
}

// Attributes are what the policy decides on.
type Attributes struct {
	auth.Attributes
	// Long says that the request is a watch, which has the stage ResponseStarted.
	Long bool
}

// Begin returns the audit of a request, or nil if the policy has none for it. received
// is when the request arrived, and id what its events are known by. The user of the
// attributes is the authenticated one, not the one that it impersonates. Received or
// NotAuthenticated must be called before anything else but Annotate.
func (a *Auditor) Begin(r *http.Request, of Attributes, id string, received time.Time) *Request {
	config := a.policy.configFor(of.Attributes)
	a.metrics.levels.WithLabelValues(string(config.Level)).Inc()
	if config.Level == auditinternal.LevelNone {
		return nil
	}
	q := &Request{auditor: a, config: config, long: of.Long, onResource: of.OnResource()}
	q.event = auditinternal.Event{
		Level: config.Level, AuditID: types.UID(id), RequestURI: r.URL.RequestURI(), Verb: of.Verb,
		User: userInfo(of.User), UserAgent: r.UserAgent(), RequestReceivedTimestamp: metav1.NewMicroTime(received),
	}
	if len(q.event.UserAgent) > maxUserAgent {
		q.event.UserAgent = q.event.UserAgent[:maxUserAgent] + "...TRUNCATED"
	}
	ips := utilnet.SourceIPs(r)
	// The last ones say most: the connection's own, and what the nearest proxies have added.
	for _, ip := range ips[max(0, len(ips)-maxSourceIPs):] {
		q.event.SourceIPs = append(q.event.SourceIPs, ip.String())
	}
	if q.onResource {
		q.event.ObjectRef = &auditinternal.ObjectReference{
			APIGroup: of.Group, APIVersion: of.Version, Resource: of.Resource, Subresource: of.Subresource, Namespace: of.Namespace, Name: of.Name,
		}
	}
	return q
}

// Received writes the first event, with the annotations that there are. It returns false if the
// request must not be served, because the event could not be stored.
func (q *Request) Received() bool {
	if !q.emit(auditinternal.StageRequestReceived, q.event.RequestReceivedTimestamp.Time) {
		q.auditor.metrics.rejected.Inc()
		return false
	}
	return true
}

// ID returns what a request's events are known by: what the client has sent as Audit-ID,
// or fallback.
func ID(r *http.Request, fallback func() string) string {
	if id := r.Header.Get(auditinternal.HeaderAuditID); id != "" && len(id) <= maxAuditID {
		return id
	}
	return fallback()
}

func userInfo(u auth.User) authnv1.UserInfo {
	info := authnv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authnv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// emit writes the event of a stage, unless the policy omits that. It reports whether the
// request may go on, which counts at the first stage only.
func (q *Request) emit(stage auditinternal.Stage, at time.Time) bool {
	if slices.Contains(q.config.OmitStages, stage) {
		return true
	}
	event := q.event
	event.Stage, event.StageTimestamp = stage, metav1.NewMicroTime(at)
	if q.event.ObjectRef != nil { // Body completes it
		event.ObjectRef = new(*q.event.ObjectRef)
	}
	if !q.ended {
		event.Annotations = maps.Clone(q.event.Annotations) // there may be more of them
	}
	return q.auditor.emit(&event)
}

// NotAuthenticated notes that the request's credentials were refused, and by which kind they
// were. It takes the place of Received: as in Kubernetes, the only event of such a request is
// that of its answer, of the stage ResponseStarted.
func (q *Request) NotAuthenticated(r *http.Request) {
	q.refused = true
	var tried []string
	if _, _, ok := r.BasicAuth(); ok {
		tried = append(tried, "basic")
	}
	if kind, _, ok := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " "); ok && strings.EqualFold(kind, "bearer") {
		tried = append(tried, "bearer")
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		tried = append(tried, "x509")
	}
	message := "Authentication failed, no credentials provided"
	if len(tried) > 0 {
		message = "Authentication failed, attempted: " + strings.Join(tried, ", ")
	}
	q.event.ResponseStatus = &metav1.Status{Message: message}
}

// Impersonates notes the user that the request acts as. constraint is the verb of
// constrained impersonation that allowed it, or "".
func (q *Request) Impersonates(u auth.User, constraint string) {
	q.event.ImpersonatedUser = new(userInfo(u))
	if constraint != "" {
		q.event.AuthenticationMetadata = &auditinternal.AuthenticationMetadata{ImpersonationConstraint: constraint}
	}
}

// Authorized notes the decision about the request, and its reason.
func (q *Request) Authorized(allowed bool, reason string) {
	decision := "forbid"
	if allowed {
		decision = "allow"
	}
	q.annotate(annotationDecision, decision)
	q.annotate(annotationReason, reason)
}

// Annotate adds an annotation to the events from then on. The first value of a key
// counts. It may be called until the answer has begun.
func (q *Request) Annotate(key, value string) {
	if strings.HasPrefix(key, prefixPatch) && !q.event.Level.GreaterOrEqual(auditinternal.LevelRequest) {
		return
	}
	if _, ok := q.event.Annotations[key]; !ok && !q.ended {
		q.annotate(key, value)
	}
}

func (q *Request) annotate(key, value string) {
	if q.event.Annotations == nil {
		q.event.Annotations = map[string]string{}
	}
	q.event.Annotations[key] = value
}

// Body notes the body of the request, whose bytes nothing may modify later.
func (q *Request) Body(contentType string, body []byte) {
	wanted := q.event.Level.GreaterOrEqual(auditinternal.LevelRequest)
	if !q.onResource || len(body) == 0 || !wanted && q.event.Verb == "patch" {
		return
	}
	object, ok := toJSON(contentType, body)
	if !ok {
		return
	}
	if q.event.Verb != "patch" {
		q.refer(object)
	}
	if wanted {
		q.event.RequestObject = q.object(object)
	}
}

// refer completes the reference of the events from the object in the request: the path
// of a create has no name.
func (q *Request) refer(object []byte) {
	var has struct {
		Metadata struct {
			Namespace, Name, UID, ResourceVersion string
		} `json:"metadata"`
	}
	if json.Unmarshal(object, &has) != nil {
		return
	}
	ref := q.event.ObjectRef
	for _, f := range []struct {
		to   *string
		from string
	}{
		{&ref.Namespace, has.Metadata.Namespace}, {&ref.Name, has.Metadata.Name},
		{(*string)(&ref.UID), has.Metadata.UID}, {&ref.ResourceVersion, has.Metadata.ResourceVersion},
	} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
}

// object returns JSON as events have it.
func (q *Request) object(object []byte) *runtime.Unknown {
	if q.config.OmitManagedFields {
		object = withoutManagedFields(object)
	}
	return &runtime.Unknown{Raw: object, ContentType: runtime.ContentTypeJSON}
}

// Failed notes the Status of an error that is answered. That of refused credentials says less
// than what is noted already.
func (q *Request) Failed(answer *metav1.Status) {
	message := answer.Message
	if q.refused {
		message = q.event.ResponseStatus.Message
	}
	q.event.ResponseStatus = &metav1.Status{
		Status: answer.Status, Message: message, Reason: answer.Reason, Details: answer.Details, Code: answer.Code,
	}
}

// Started notes that an answer begins.
func (q *Request) Started(code int) {
	if q.started || q.ended {
		return
	}
	q.started = true
	if q.event.ResponseStatus == nil {
		q.event.ResponseStatus = &metav1.Status{}
	}
	q.event.ResponseStatus.Code = int32(code)
	if q.long || q.refused {
		q.emit(auditinternal.StageResponseStarted, time.Now())
		q.event.ResponseStatus = new(*q.event.ResponseStatus) // the event keeps the other
	}
}

// KeepsResponse reports whether Wrote is of use: it is called for each write.
func (q *Request) KeepsResponse() bool {
	return q.onResource && !q.long && !q.tooLarge && !q.ended && q.event.Level.GreaterOrEqual(auditinternal.LevelRequestResponse)
}

// Wrote notes a part of the answer, which is copied.
func (q *Request) Wrote(p []byte) {
	if len(q.response)+len(p) > maxResponse {
		q.response, q.tooLarge = nil, true
		q.annotate(annotationTruncated, "true")
		return
	}
	q.response = append(q.response, p...)
}

// Completed writes the last event. header is that of the answer.
func (q *Request) Completed(header http.Header) {
	if q.ended {
		return
	}
	if !q.started {
		q.Started(http.StatusOK)
		q.event.ResponseStatus.Status, q.event.ResponseStatus.Message = metav1.StatusSuccess, "Connection closed early"
	}
	q.ended = true
	if len(q.response) > 0 {
		if object, ok := responseJSON(header, q.response); ok {
			q.event.ResponseObject = q.object(object)
		} else {
			q.annotate(annotationTruncated, "true")
		}
		q.response = nil
	}
	if q.refused {
		return
	}
	now := time.Now()
	q.annotateTimes(now.Sub(q.event.RequestReceivedTimestamp.Time))
	q.emit(auditinternal.StageResponseComplete, now)
}

// KeepsTimes reports whether Took is of use: a watch takes as long as its client wants.
func (q *Request) KeepsTimes() bool { return q.event.Verb != "watch" }

// Took adds what a part of the request has taken. Of those of which several may go on at a
// time, the longest counts, as in Kubernetes.
func (q *Request) Took(part reporter.Part, d time.Duration) {
	switch part {
	case reporter.Authorization, reporter.ValidatingWebhook:
		q.times[part] = max(q.times[part], d)
	default:
		q.times[part] += d
	}
}

// annotateTimes says of a slow request how long it took, and its parts.
func (q *Request) annotateTimes(total time.Duration) {
	if total <= slow || !q.KeepsTimes() {
		return
	}
	q.annotate(prefixLatency+"total", total.String())
	for part, took := range q.times {
		if took > 0 {
			q.annotate(prefixLatency+partNames[part], took.String())
		}
	}
}

// Panicked writes the last event of a request that has met a bug.
func (q *Request) Panicked(reason any) {
	if q.ended {
		return
	}
	q.ended = true
	q.event.ResponseStatus = &metav1.Status{
		Code: http.StatusInternalServerError, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("the request panicked: %v", reason),
	}
	q.emit(auditinternal.StagePanic, time.Now())
}

// attributes are auth.Attributes for k8s.io/apiserver's policy.
type attributes struct{ of auth.Attributes }

var _ authorizer.Attributes = attributes{}

func (a attributes) GetUser() user.Info {
	if a.of.User.Name == "" {
		return nil
	}
	return &user.DefaultInfo{Name: a.of.User.Name, UID: a.of.User.UID, Groups: a.of.User.Groups, Extra: a.of.User.Extra}
}
func (a attributes) GetVerb() string { return a.of.Verb }
func (a attributes) IsReadOnly() bool {
	return a.of.Verb == "get" || a.of.Verb == "list" || a.of.Verb == "watch"
}
func (a attributes) GetNamespace() string    { return a.of.Namespace }
func (a attributes) GetResource() string     { return a.of.Resource }
func (a attributes) GetSubresource() string  { return a.of.Subresource }
func (a attributes) GetName() string         { return a.of.Name }
func (a attributes) GetAPIGroup() string     { return a.of.Group }
func (a attributes) GetAPIVersion() string   { return a.of.Version }
func (a attributes) IsResourceRequest() bool { return a.of.OnResource() }
func (a attributes) GetPath() string         { return a.of.Path }

func (a attributes) GetFieldSelector() (fields.Requirements, error) { return nil, nil }
func (a attributes) GetLabelSelector() (labels.Requirements, error) { return nil, nil }
