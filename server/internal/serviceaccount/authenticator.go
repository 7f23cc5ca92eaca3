package serviceaccount

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// The keys of auth.User.Extra for what a token says beside its account.
const (
	extraCredential = "authentication.kubernetes.io/credential-id"
	extraPodName    = "authentication.kubernetes.io/pod-name"
	extraPodUID     = "authentication.kubernetes.io/pod-uid"
	extraNodeName   = "authentication.kubernetes.io/node-name"
	extraNodeUID    = "authentication.kubernetes.io/node-uid"
)

// auditStale is the annotation of audit events that says for how long a token should have been
// replaced.
const auditStale = "authentication.k8s.io/stale-token"

// deletionLeeway is how long a token stays valid after its account, or its object,
// was marked as being deleted, so that its holder can finish.
const deletionLeeway = time.Minute

// AuthenticateToken implements auth.TokenAuthenticator. A token is valid while
// its account and the object that it is bound to are the same as when it was
// issued.
func (t *Tokens) AuthenticateToken(ctx context.Context, token string, audiences []string) (auth.Identity, error) {
	c, err := t.opts.Keys.current.Load().verify(token, t.opts.Issuers)
	if err != nil {
		return auth.Identity{}, err
	}
	if err := c.check(t.opts.Now()); err != nil {
		return auth.Identity{}, err
	}
	if c.Kubernetes == nil {
		t.metrics.legacy.Inc()
		reporter.Annotate(ctx, auditLegacy, c.Subject)
	}
	common := c.intersectAudiences(audiences, t.opts.Audiences)
	if len(common) == 0 {
		return auth.Identity{}, fmt.Errorf("token audiences %q is invalid for the target audiences %q", c.Audience, audiences)
	}
	if err := t.checkReferences(ctx, c, token); err != nil {
		return auth.Identity{}, err
	}
	t.noteAge(ctx, c)
	return auth.Identity{User: userOf(c), Audiences: common}, nil
}

// noteAge counts a token that lives on after its holder should have replaced it, and says so in
// the audit log from then on.
func (t *Tokens) noteAge(ctx context.Context, c *claims) {
	if c.Kubernetes == nil || c.Kubernetes.WarnAfter == nil || *c.Kubernetes.WarnAfter == 0 {
		return
	}
	late := t.opts.Now().Unix() - c.Kubernetes.WarnAfter.Time().Unix()
	if late <= 0 {
		t.metrics.valid.Inc()
		return
	}
	t.metrics.stale.Inc()
	reporter.Annotate(ctx, auditStale, fmt.Sprintf("subject: %s, seconds after warning threshold: %d", c.Subject, late))
}

// checkReferences refuses a token whose account, or an object that it is bound to,
// is not the one that it was issued for.
func (t *Tokens) checkReferences(ctx context.Context, c *claims, token string) error {
	if c.Kubernetes == nil {
		return t.checkLegacy(ctx, c, token)
	}
	namespace, ref := c.account()
	err := checkReference[*corev1.ServiceAccount](ctx, t, "serviceaccounts", namespace, &ref)
	if err == nil {
		err = checkReference[*corev1.Secret](ctx, t, "secrets", namespace, c.Kubernetes.Secret)
	}
	if err == nil {
		err = checkReference[*corev1.Pod](ctx, t, "pods", namespace, c.Kubernetes.Pod)
	}
	// The node of a pod is information; only a token that is bound to a node
	// depends on it.
	if err == nil && c.Kubernetes.Pod == nil {
		err = checkReference[*corev1.Node](ctx, t, "nodes", "", c.Kubernetes.Node)
	}
	return err
}

// checkReference returns nil if the object exists, has the uid of the reference,
// and has not been in deletion for long. A nil reference is to no object.
func checkReference[T resource.Object](ctx context.Context, t *Tokens, plural, namespace string, ref *reference) error {
	if ref == nil {
		return nil
	}
	obj, err := recent[T](ctx, t.set, plural, namespace, ref)
	if err != nil {
		return err
	}
	if obj.GetUID() != ref.UID {
		return fmt.Errorf("%s %q is not the one that the token was issued for: its uid is %s, not %s", plural, ref.Name, obj.GetUID(), ref.UID)
	}
	if at := obj.GetDeletionTimestamp(); at != nil && t.opts.Now().After(at.Add(deletionLeeway)) {
		return fmt.Errorf("%s %q has been deleted", plural, ref.Name)
	}
	return nil
}

func userOf(c *claims) auth.User {
	namespace, ref := c.account()
	user := auth.User{
		Name: auth.ServiceAccountName(namespace, ref.Name), UID: string(ref.UID),
		Groups: slices.Clip(auth.ServiceAccountGroups(namespace)), Extra: map[string][]string{},
	}
	add := func(key, value string) {
		if value != "" {
			user.Extra[key] = []string{value}
		}
	}
	if c.ID != "" {
		add(extraCredential, credentialID(c.ID))
	}
	if c.Kubernetes != nil {
		addReference(add, c.Kubernetes.Pod, extraPodName, extraPodUID)
		addReference(add, c.Kubernetes.Node, extraNodeName, extraNodeUID)
	}
	return user
}

// credentialID is how users and audit events name a token.
func credentialID(id string) string { return "JTI=" + id }

func addReference(add func(key, value string), ref *reference, name, uid string) {
	if ref != nil {
		add(name, ref.Name)
		add(uid, string(ref.UID))
	}
}

var _ auth.TokenAuthenticator = (*Tokens)(nil)

// sameUID reports whether a uid, which a client may have left out, is the object's.
func sameUID(noted string, uid types.UID) bool { return noted == "" || types.UID(noted) == uid }
