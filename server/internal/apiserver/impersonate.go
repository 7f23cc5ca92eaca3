package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
)

// verbImpersonate is what one must be allowed to do to somebody to be taken
// for them.
const verbImpersonate = "impersonate"

// impersonate returns whom the request is to be taken for: its user, or who its
// Impersonate headers name, if the user may do that to each part of them.
func (s *Server) impersonate(r *http.Request, user auth.User) (auth.User, error) {
	wanted, present, err := impersonated(r.Header)
	if err != nil || !present {
		return user, err
	}
	for _, a := range impersonations(wanted) {
		a.User, a.Verb, a.Path = user, verbImpersonate, r.URL.Path
		// Who has shown no credentials is nobody that anybody could have allowed it.
		if user.Name == auth.Anonymous {
			return user, forbidden(a, "")
		}
		if err := s.require(r.Context(), a); err != nil {
			return user, err
		}
	}
	// What follows from the name is not asked for, as it follows from it.
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

// impersonated reads the headers; present is false if there are none.
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

// impersonations lists what must be allowed, each as a resource of its own.
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
