package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/resource"
)

const (
	// defaultLifetime is the lifetime of a token if the request states none.
	defaultLifetime = time.Hour
	// minLifetime and maxLifetime are Kubernetes' limits.
	minLifetime      = 10 * time.Minute
	maxLifetime      = (1 << 32) * time.Second
	tokenRequestKind = "TokenRequest"
	// extendedLifetime is that of the tokens that are extended.
	extendedLifetime = 365 * 24 * time.Hour
	// auditIssued is the annotation of audit events by which a token that was made is found again
	// in the events of the requests with it, in the user's extra values.
	auditIssued = "authentication.kubernetes.io/issued-credential-id"
)

// Options are the options of Tokens.
type Options struct {
	// Issuers are the issuers whose tokens are accepted. New tokens have the
	// first. Required.
	Issuers []string
	// Audiences identify the server; a token that is requested without an
	// audience is for them. Default: Issuers[:1].
	Audiences []string
	// Keys sign and verify tokens. Required.
	Keys *KeyRing
	// Tracking notes the uses of legacy tokens; nil: they are not noted.
	Tracking *Tracking
	// MaxLifetime bounds the lifetime of new tokens; 0: nothing does. Who asks for more gets as
	// much, and a warning.
	MaxLifetime time.Duration
	// Extend has the tokens that pods get without asking live for a year, and say when they
	// should have been replaced, for programs that read their token once.
	Extend bool
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Tokens issues and authenticates the tokens of service accounts. It is safe for
// concurrent use.
type Tokens struct {
	opts     Options
	set      *registry.Set
	accounts *Accounts
	metrics  *metrics
}

// NewTokens returns the tokens of the accounts of a set.
func NewTokens(set *registry.Set, accounts *Accounts, opts Options) (*Tokens, error) {
	if len(opts.Issuers) == 0 || opts.Keys == nil {
		return nil, errors.New("serviceaccount: Options.Issuers and Options.Keys are required")
	}
	if len(opts.Audiences) == 0 {
		opts.Audiences = opts.Issuers[:1]
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Tokens{opts: opts, set: set, accounts: accounts, metrics: newMetrics()}, nil
}

// Audiences returns the audiences that identify the server.
func (t *Tokens) Audiences() []string { return t.opts.Audiences }

// IssueToken answers a request for a token of a service account: it fills in the
// status, and the fields that the request has left out. Every error is a
// *apierrors.StatusError.
func (t *Tokens) IssueToken(ctx context.Context, namespace, name string, request *authenticationv1.TokenRequest) error {
	spec := &request.Spec
	account, err := t.accounts.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	if err := matchAccount(request, account); err != nil {
		return err
	}
	if err := t.complete(spec); err != nil {
		return err
	}
	c := &bound{Namespace: namespace, ServiceAccount: reference{account.Name, account.UID}}
	if spec.BoundObjectRef != nil {
		if err := t.bind(ctx, c, *spec.BoundObjectRef); err != nil {
			return err
		}
	}
	t.shorten(ctx, spec)
	now := t.opts.Now()
	id := uuid.NewString()
	expiry := now.Add(time.Duration(*spec.ExpirationSeconds) * time.Second)
	end := t.extend(c, spec, now, expiry)
	request.Status.Token, err = t.sign(&claims{
		Claims: jwt.Claims{
			Issuer: t.opts.Issuers[0], Subject: auth.ServiceAccountName(namespace, name),
			ID: id, IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(end),
		},
		Audience: spec.Audiences, Kubernetes: c,
	})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("sign a token: %w", err))
	}
	request.Status.ExpirationTimestamp = metav1.NewTime(expiry.Truncate(time.Second))
	reporter.Annotate(ctx, auditIssued, credentialID(id))
	return nil
}

// matchAccount refuses a request for a token of another account than the one that has the name
// now, and fills in which one it is.
func matchAccount(request *authenticationv1.TokenRequest, account *corev1.ServiceAccount) error {
	if request.UID != "" && request.UID != account.UID {
		return apierrors.NewConflict(schema.GroupResource{Group: authenticationv1.GroupName, Resource: tokenRequestKind}, account.Name, fmt.Errorf(
			"the UID in the token request (%s) does not match the UID of the service account (%s)", request.UID, account.UID))
	}
	request.Name, request.Namespace, request.UID = account.Name, account.Namespace, account.UID
	return nil
}

// shorten bounds the lifetime of a token.
func (t *Tokens) shorten(ctx context.Context, spec *authenticationv1.TokenRequestSpec) {
	most := int64(t.opts.MaxLifetime / time.Second)
	if most == 0 || *spec.ExpirationSeconds <= most {
		return
	}
	reporter.Warn(ctx, fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", *spec.ExpirationSeconds, most))
	spec.ExpirationSeconds = &most
}

// extend returns when a token ends that should be replaced by expiry.
func (t *Tokens) extend(c *bound, spec *authenticationv1.TokenRequestSpec, now, expiry time.Time) time.Time {
	foreign := func(audience string) bool { return !slices.Contains(t.opts.Audiences, audience) }
	if !t.opts.Extend || c.Pod == nil || *spec.ExpirationSeconds != podTokenSeconds || slices.ContainsFunc(spec.Audiences, foreign) {
		return expiry
	}
	c.WarnAfter = jwt.NewNumericDate(expiry)
	return now.Add(extendedLifetime)
}

// sign signs a token by the current key.
func (t *Tokens) sign(c *claims) (string, error) { return t.opts.Keys.current.Load().signer.sign(c) }

// complete fills in the fields that a request has left out, and refuses a lifetime
// or a binding that is not possible.
func (t *Tokens) complete(spec *authenticationv1.TokenRequestSpec) error {
	if spec.ExpirationSeconds == nil {
		spec.ExpirationSeconds = new(int64(defaultLifetime / time.Second))
	}
	if len(spec.Audiences) == 0 {
		spec.Audiences = t.opts.Audiences
	}
	var errs field.ErrorList
	at := field.NewPath("spec")
	switch seconds := *spec.ExpirationSeconds; {
	case seconds < int64(minLifetime/time.Second):
		errs = append(errs, field.Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"))
	case seconds > int64(maxLifetime/time.Second):
		errs = append(errs, field.Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	if len(spec.Attestations) > 0 { // a webhook's tokens may have some, behind a feature gate that is off
		errs = field.ErrorList{field.Invalid(at.Child("attestations"), spec.Attestations, "attestations may only be specified with a webhook bound object reference")}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: authenticationv1.GroupName, Kind: tokenRequestKind}, "", errs)
	}
	return nil
}

// bind makes the token valid only as long as an object exists.
func (t *Tokens) bind(ctx context.Context, c *bound, ref authenticationv1.BoundObjectReference) error {
	var uid types.UID
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind := gvk.Kind
	if gvk.Group != "" {
		kind = ""
	}
	if err := checkBoundName(kind, ref.Name); err != nil {
		return err
	}
	switch kind {
	case "Pod":
		pod, err := lookup[*corev1.Pod](ctx, t.set, "pods", c.Namespace, ref.Name)
		if err != nil {
			return err
		}
		if pod.Spec.ServiceAccountName != c.ServiceAccount.Name {
			return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", c.ServiceAccount.Name))
		}
		uid, c.Pod = pod.UID, &reference{pod.Name, pod.UID}
		c.Node = t.nodeOf(ctx, pod)
	case "Secret":
		secret, err := lookup[*corev1.Secret](ctx, t.set, "secrets", c.Namespace, ref.Name)
		if err != nil {
			return err
		}
		uid, c.Secret = secret.UID, &reference{secret.Name, secret.UID}
	case "Node":
		node, err := lookup[*corev1.Node](ctx, t.set, "nodes", "", ref.Name)
		if err != nil {
			return err
		}
		uid, c.Node = node.UID, &reference{node.Name, node.UID}
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", gvk.String()))
	}
	if ref.UID != "" && ref.UID != uid {
		return apierrors.NewConflict(schema.GroupResource{Resource: ref.Kind}, ref.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	return nil
}

// checkBoundName refuses names that no object of a kind of core can have; kind is empty for all others.
func checkBoundName(kind, name string) error {
	switch why := content.IsPathSegmentName(name); {
	case kind != "Pod" && kind != "Secret" && kind != "Node":
		return nil
	case name == "":
		return apierrors.NewBadRequest("Name parameter required.")
	case len(why) > 0:
		return apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(why, ";")))
	}
	return nil
}

// nodeOf returns the node of a pod, as information in the token. A node that does
// not exist is named without a uid.
func (t *Tokens) nodeOf(ctx context.Context, pod *corev1.Pod) *reference {
	if pod.Spec.NodeName == "" {
		return nil
	}
	ref := &reference{Name: pod.Spec.NodeName}
	if node, err := lookup[*corev1.Node](ctx, t.set, "nodes", "", ref.Name); err == nil {
		ref.UID = node.UID
	}
	return ref
}

// lookup gets an object of core/v1.
func lookup[T resource.Object](ctx context.Context, set *registry.Set, plural, namespace, name string) (T, error) {
	r, ok := set.Lookup("", "v1", plural)
	if !ok {
		var none T
		return none, apierrors.NewNotFound(schema.GroupResource{Resource: plural}, name)
	}
	return registry.GetAs[T](ctx, r, namespace, name)
}

// recent is lookup for the object of a reference, for every request with a token: it does not
// wait for the cache, and asks the store where the cache has another object of that name.
func recent[T resource.Object](ctx context.Context, set *registry.Set, plural, namespace string, ref *reference) (T, error) {
	var none T
	r, ok := set.Lookup("", "v1", plural)
	if !ok {
		return none, apierrors.NewNotFound(schema.GroupResource{Resource: plural}, ref.Name)
	}
	obj, err := r.GetRecent(ctx, namespace, ref.Name)
	if err == nil && obj.GetUID() != ref.UID {
		obj, err = r.GetFromStore(ctx, namespace, ref.Name)
	}
	if err != nil {
		return none, err
	}
	return registry.As[T](r, obj)
}
