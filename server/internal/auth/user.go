package auth

import (
	"context"
	"slices"
	"strings"
)

// User is who sends a request. Its slices and its map are shared by all who
// hold the value and must not be modified.
type User struct {
	Name   string
	UID    string
	Groups []string
	// Extra is what else the authenticator knows, by keys such as
	// "authentication.kubernetes.io/pod-name".
	Extra map[string][]string
}

// The names that have a meaning to every cluster.
const (
	// Anonymous is the user of a request without credentials.
	Anonymous = "system:anonymous"
	// Authenticated is a group of every user with valid credentials.
	Authenticated = "system:authenticated"
	// Unauthenticated is the group of Anonymous.
	Unauthenticated = "system:unauthenticated"
	// Masters is the group that may do everything, whatever an Authorizer says.
	Masters = "system:masters"
	// ServiceAccounts is the group of every service account.
	ServiceAccounts = "system:serviceaccounts"

	serviceAccountPrefix = "system:serviceaccount:"
)

// In says whether the user is in a group.
func (u User) In(group string) bool { return slices.Contains(u.Groups, group) }

// AsAuthenticated returns the user with the group of those with valid
// credentials.
func (u User) AsAuthenticated() User {
	if !u.In(Authenticated) {
		u.Groups = append(slices.Clip(u.Groups), Authenticated)
	}
	return u
}

// ServiceAccountName is the user name of a service account.
func ServiceAccountName(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// ServiceAccountGroups are the groups of a namespace's service accounts.
func ServiceAccountGroups(namespace string) []string {
	return []string{ServiceAccounts, ServiceAccounts + ":" + namespace}
}

// SplitServiceAccount takes a service account's user name apart; ok is false
// if it is somebody else's.
func SplitServiceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

type userKey struct{}

// WithUser returns a context that carries who a request is from.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns who the request of a context is from; ok is false for what
// the server does by itself.
func UserFrom(ctx context.Context) (u User, ok bool) {
	u, ok = ctx.Value(userKey{}).(User)
	return u, ok
}
