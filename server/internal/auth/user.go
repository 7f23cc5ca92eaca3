package auth

import (
	"context"
	"slices"
	"strings"
)

// User is the identity of a request. The slices and the map of a value are shared
// by its copies, and must not be modified.
type User struct {
	Name   string
	UID    string
	Groups []string
	// Extra is further information of the authenticator, by keys such as
	// "authentication.kubernetes.io/pod-name".
	Extra map[string][]string
}

// The names of users and groups that have a meaning in every cluster.
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
	// Nodes is the group of every kubelet.
	Nodes = "system:nodes"

	serviceAccountPrefix = "system:serviceaccount:"
	nodePrefix           = "system:node:"
)

// In reports whether the user is in a group.
func (u User) In(group string) bool { return slices.Contains(u.Groups, group) }

// Node returns the name of the node whose kubelet the user is. ok is false if it is none;
// the name of a kubelet may be empty, and then nothing may be allowed to it.
func (u User) Node() (name string, ok bool) {
	name, ok = strings.CutPrefix(u.Name, nodePrefix)
	return name, ok && u.In(Nodes)
}

// NodeUserName returns the user name of a node's kubelet.
func NodeUserName(node string) string { return nodePrefix + node }

// AsAuthenticated returns the user with the group Authenticated.
func (u User) AsAuthenticated() User {
	if !u.In(Authenticated) {
		u.Groups = append(slices.Clip(u.Groups), Authenticated)
	}
	return u
}

// ServiceAccountName returns the user name of a service account.
func ServiceAccountName(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// ServiceAccountGroups returns the groups of a namespace's service accounts.
func ServiceAccountGroups(namespace string) []string {
	return []string{ServiceAccounts, ServiceAccounts + ":" + namespace}
}

// SplitServiceAccount splits the user name of a service account; ok is false if the
// name is that of another user.
func SplitServiceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

type userKey struct{}

// WithUser returns a context that carries the user of a request.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns the user of a context's request; ok is false for writes of the
// server itself.
func UserFrom(ctx context.Context) (u User, ok bool) {
	u, ok = ctx.Value(userKey{}).(User)
	return u, ok
}
