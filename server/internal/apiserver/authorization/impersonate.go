package authorization

import (
	"net/http"
	"net/url"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
)

// verbImpersonate is the verb that a user needs on another user, group or
// extra field to act as it.
const verbImpersonate = "impersonate"

// Impersonate returns the user that the request acts as: its own, or the one that
// its Impersonate headers name, if its own user may impersonate each part of
// that one.
func (a *Authorizer) Impersonate(r *http.Request, user auth.User) (auth.User, error) {
	wanted, present, err := impersonated(r.Header)
	if err != nil || !present {
		return user, err
	}
	for _, part := range impersonations(wanted) {
		part.User, part.Verb, part.Path = user, verbImpersonate, r.URL.Path
		// No rule can be meant for a user that has no credentials.
		if user.Name == auth.Anonymous {
			return user, forbidden(part, "")
		}
		if err := a.Authorize(r.Context(), part); err != nil {
			return user, err
		}
	}
	// Groups that follow from the name need no permission of their own.
	if namespace, _, ok := auth.SplitServiceAccount(wanted.Name); ok && len(wanted.Groups) == 0 {
		wanted.Groups = auth.ServiceAccountGroups(namespace)
	}
	switch {
	case wanted.Name == auth.Anonymous && !wanted.In(auth.Unauthenticated):
		wanted.Groups = append(wanted.Groups, auth.Unauthenticated)
	case wanted.Name != auth.Anonymous && !wanted.In(auth.Unauthenticated):
		wanted = wanted.AsAuthenticated()
	}
	return wanted, nil
}

// impersonated reads the Impersonate headers; present is false if there are
// none.
func impersonated(h http.Header) (user auth.User, present bool, err error) {
	user.Name = h.Get(authenticationv1.ImpersonateUserHeader)
	user.UID = h.Get(authenticationv1.ImpersonateUIDHeader)
	user.Groups = append([]string(nil), h.Values(authenticationv1.ImpersonateGroupHeader)...)
	for name, values := range h {
		key, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key = strings.ToLower(key)
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[key] = append(user.Extra[key], values...)
	}
	if user.Name == "" && (user.UID != "" || len(user.Groups) > 0 || len(user.Extra) > 0) {
		return user, false, status.BadRequest("the request impersonates groups, a uid or extra fields, but no user: set the header %s, too",
			authenticationv1.ImpersonateUserHeader)
	}
	return user, user.Name != "", nil
}

// impersonations returns the parts of a user, each as the resource on which the
// permission is needed.
func impersonations(wanted auth.User) []auth.Attributes {
	core := func(resource, namespace, name string) auth.Attributes {
		return auth.Attributes{Version: "v1", Resource: resource, Namespace: namespace, Name: name}
	}
	of := func(resource, subresource, name string) auth.Attributes {
		return auth.Attributes{
			Group: authenticationv1.GroupName, Version: "v1", Resource: resource, Subresource: subresource, Name: name,
		}
	}
	all := []auth.Attributes{core("users", "", wanted.Name)}
	if namespace, name, ok := auth.SplitServiceAccount(wanted.Name); ok {
		all[0] = core("serviceaccounts", namespace, name)
	}
	for _, group := range wanted.Groups {
		all = append(all, core("groups", "", group))
	}
	if wanted.UID != "" {
		all = append(all, of("uids", "", wanted.UID))
	}
	for key, values := range wanted.Extra {
		for _, value := range values {
			all = append(all, of("userextras", key, value))
		}
	}
	return all
}
