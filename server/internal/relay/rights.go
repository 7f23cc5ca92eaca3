package relay

import (
	"context"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// requiredRights are what a relay has to be allowed at the upstream so that users other than its
// administrator can ask it, and that it learns which kinds there are. To list and watch it
// needs what they do: that is not known before.
var requiredRights = []authorizationv1.SelfSubjectAccessReviewSpec{
	onResource("create", authenticationv1.GroupName, "tokenreviews", ""),
	onResource("create", authorizationv1.GroupName, "subjectaccessreviews", ""),
	onResource("impersonate", "", "users", ""),
	onResource("impersonate", "", "groups", ""),
	onResource("impersonate", "", "serviceaccounts", ""),
	onResource("impersonate", authenticationv1.GroupName, "uids", ""),
	// What kube-apiserver says of the users of tokens and certificates.
	onResource("impersonate", authenticationv1.GroupName, "userextras", "authentication.kubernetes.io/credential-id"),
	onPath("/version"), onPath("/api"), onPath("/api/v1"), onPath("/apis"), onPath("/apis/apps/v1"), onPath("/openapi/v3"),
}

// roleRights are what a relay has to be allowed besides so that it learns at once when rights may have
// been withdrawn: see FollowRoles.
var roleRights = func() (rights []authorizationv1.SelfSubjectAccessReviewSpec) {
	for _, name := range roleResources {
		rights = append(rights, onResource("list", rbacv1.GroupName, name, ""), onResource("watch", rbacv1.GroupName, name, ""))
	}
	return rights
}()

func onResource(verb, group, resource, subresource string) authorizationv1.SelfSubjectAccessReviewSpec {
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: verb, Group: group, Resource: resource, Subresource: subresource,
	}}
}

func onPath(path string) authorizationv1.SelfSubjectAccessReviewSpec {
	return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: path}}
}

const (
	// confirmRights is after how long the upstream is asked again when it has denied a right: one
	// that has just started may not have loaded its roles.
	confirmRights = 10 * time.Second
	// retryRights is the same when it has not answered.
	retryRights = time.Minute
)

// LogMissingRights asks the upstream which rights the relay has of those that it needs, and logs what
// it lacks. That is no error: the administrator can work through a relay that has none of them.
// It returns when the upstream has answered, or ctx ends.
func (r *Relay) LogMissingRights(ctx context.Context) {
	r.logLacking(ctx, r.missing(requiredRights), r.warnOfMissing)
	r.logLacking(ctx, r.missing(roleRights), r.warnOfRoles)
}

// logLacking asks which rights the relay lacks. It warns only of what two answers agree on.
func (r *Relay) logLacking(ctx context.Context, ask func(context.Context) ([]string, error), warn func(lacks string, err error)) {
	var before, logged string
	for {
		lacking, err := ask(ctx)
		if ctx.Err() != nil {
			return
		}
		lacks, answered, wait := strings.Join(lacking, ", "), err == nil || apierrors.IsForbidden(err), confirmRights
		if !answered {
			r.opts.Logger.Debug("the upstream does not say what the relay may do", "error", err)
			wait = retryRights
		}
		if lacks != "" && lacks == before && lacks != logged {
			warn(lacks, err)
			logged = lacks
		}
		if answered && (lacks == "" || lacks == before) {
			return
		}
		before = lacks
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

func (r *Relay) warnOfMissing(lacks string, err error) {
	if apierrors.IsForbidden(err) {
		r.opts.Logger.Warn("the upstream does not let the relay ask what it may do, as if the kubeconfig had no credentials: requests of its users may fail", "lacks", lacks, "error", err)
		return
	}
	r.opts.Logger.Warn("the relay's user lacks rights at the upstream: requests fail of users other than that of admin.kubeconfig, unless it has them for certain names only (docs/operators/relay/rbac.yaml)", "lacks", lacks)
}

// warnOfRoles is warnOfMissing for the rights by which a relay follows roles and bindings. If it may
// not ask, that has been logged.
func (r *Relay) warnOfRoles(lacks string, err error) {
	if apierrors.IsForbidden(err) {
		return
	}
	r.opts.Logger.Warn("the relay's user may not follow the roles and bindings of the upstream: an open watch whose right is withdrawn may go on for ten minutes (docs/operators/relay.md)", "lacks", lacks)
}

func (r *Relay) missing(rights []authorizationv1.SelfSubjectAccessReviewSpec) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) { return r.missingRights(ctx, rights) }
}

// missingRights returns which of the rights the upstream denies, until it does not
// answer. That it forbids the question is the last one of them, and an error, too.
func (r *Relay) missingRights(ctx context.Context, rights []authorizationv1.SelfSubjectAccessReviewSpec) (lacks []string, err error) {
	for _, right := range rights {
		allowed, err := r.may(ctx, right)
		if apierrors.IsForbidden(err) {
			lacks = append(lacks, "create selfsubjectaccessreviews."+authorizationv1.GroupName)
		}
		if err != nil {
			return lacks, err
		}
		if !allowed {
			lacks = append(lacks, nameOf(right))
		}
	}
	return lacks, nil
}

// may asks the upstream whether the relay has a right.
func (r *Relay) may(ctx context.Context, right authorizationv1.SelfSubjectAccessReviewSpec) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	answer, err := r.review(ctx, right)
	return answer.Allowed, err
}

// review asks the upstream about a right of the relay.
func (r *Relay) review(ctx context.Context, right authorizationv1.SelfSubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	answer, err := client.For[*authorizationv1.SelfSubjectAccessReview](r.client).Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: right}, metav1.CreateOptions{})
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	return answer.Status, nil
}

// nameOf says what a right is, as kubectl auth can-i has it.
func nameOf(right authorizationv1.SelfSubjectAccessReviewSpec) string {
	if path := right.NonResourceAttributes; path != nil {
		return path.Verb + " " + path.Path
	}
	of := right.ResourceAttributes
	name := of.Verb + " " + of.Resource
	if of.Group != "" {
		name += "." + of.Group
	}
	if of.Subresource != "" {
		name += "/" + of.Subresource
	}
	return name
}
