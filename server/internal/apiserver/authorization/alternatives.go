package authorization

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// verbImpersonate is the verb that a user needs on another user, group or extra field to
// act as it, whatever it does then. With a colon and a mode, it is that of constrained
// impersonation.
const verbImpersonate = "impersonate"

// The modes of constrained impersonation: which kind of user it is about. Source:
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/.
const (
	modeAssociatedNode = "associated-node" // the node that the service account of the request runs on
	modeArbitraryNode  = "arbitrary-node"
	modeServiceAccount = "serviceaccount"
	modeUserInfo       = "user-info" // everything else
)

const (
	// extraNodeName is the extra field of a service account with the node of its pod.
	extraNodeName = "authentication.kubernetes.io/node-name"
	// extraNodeKeys replaces the extra fields of a service account that impersonates its
	// node, so that a decision is the same on every node.
	extraNodeKeys = "authentication.kubernetes.io/associated-node-keys"
	// manyParts is how many groups or values of extra fields may be allowed by one right to
	// all of them, too.
	manyParts = 4
	all       = "*"
)

// alternative is one way in which a user may be impersonated, if all its rights are given.
type alternative struct {
	as         auth.User
	constraint string
	needed     iter.Seq[auth.Attributes]
	// invalid is why it is refused even then, to users who have the first of the rights.
	invalid string
}

// alternativesOf returns the ways in which the wanted user may be impersonated for a
// request, in the order in which they are tried.
func alternativesOf(wanted *auth.User, request auth.Attributes) []alternative {
	var list []alternative
	onlyName := wanted.UID == "" && len(wanted.Groups) == 0 && len(wanted.Extra) == 0
	node, isNode := nodeName(wanted.Name)
	_, _, isAccount := auth.SplitServiceAccount(wanted.Name)
	switch {
	case isNode && onlyName:
		if own, ok := associatedNode(&request.User); ok && own == node {
			list = append(list, associated(wanted, request))
		}
		list = append(list, constrained(modeArbitraryNode, wanted, request, false))
	case isAccount && onlyName:
		list = append(list, constrained(modeServiceAccount, wanted, request, false))
	case !isNode && !isAccount:
		if len(wanted.Groups) >= manyParts || values(wanted.Extra) >= manyParts {
			list = append(list, constrained(modeUserInfo, wanted, request, true))
		}
		list = append(list, constrained(modeUserInfo, wanted, request, false))
	}
	return append(list, alternative{
		as: complete(*wanted), needed: impersonations(request.User, request.Path, verbImpersonate, wanted, false),
	})
}

// constrained returns an alternative of a mode: the right to do in it what the request does,
// and to be each part of the user. many asks for one right to all groups or values of extra
// fields where there are many.
func constrained(mode string, wanted *auth.User, request auth.Attributes, many bool) alternative {
	verb := verbImpersonate + ":" + mode
	action := request
	action.Verb = verbImpersonate + "-on:" + mode + ":" + request.Verb
	as := *wanted
	if mode == modeArbitraryNode || mode == modeAssociatedNode {
		as.Groups = []string{auth.Nodes}
	}
	parts := impersonations(request.User, request.Path, verb, wanted, many)
	return alternative{
		as: complete(as), constraint: verb, invalid: refusedAlways(wanted),
		needed: func(yield func(auth.Attributes) bool) {
			if yield(action) {
				parts(yield)
			}
		},
	}
}

// associated returns the alternative of a service account that impersonates its own node.
// Its rights name neither the node nor what else differs from pod to pod.
func associated(wanted *auth.User, request auth.Attributes) alternative {
	request.User.Extra = map[string][]string{extraNodeKeys: slices.Sorted(maps.Keys(request.User.Extra))}
	a := constrained(modeAssociatedNode, wanted, request, false)
	needed := a.needed
	a.needed = func(yield func(auth.Attributes) bool) {
		first := true // what the request does
		needed(func(right auth.Attributes) bool {
			if !first {
				right.Name = all
			}
			first = false
			return yield(right)
		})
	}
	return a
}

// nodeName returns the node that a user name is of.
func nodeName(user string) (node string, ok bool) {
	node, ok = strings.CutPrefix(user, auth.NodeUserName(""))
	return node, ok && len(validation.IsDNS1123Subdomain(node)) == 0
}

// associatedNode returns the node of the pod whose service account a user is.
func associatedNode(user *auth.User) (node string, ok bool) {
	names := user.Extra[extraNodeName]
	if _, _, isAccount := auth.SplitServiceAccount(user.Name); !isAccount || len(names) != 1 {
		return "", false
	}
	return names[0], true
}

// complete returns the user with the groups that follow from the others, and from the name;
// they need no right of their own.
func complete(user auth.User) auth.User {
	if namespace, _, ok := auth.SplitServiceAccount(user.Name); ok && len(user.Groups) == 0 {
		user.Groups = auth.ServiceAccountGroups(namespace)
	}
	switch {
	case user.Name == auth.Anonymous && !user.In(auth.Unauthenticated):
		user.Groups = append(slices.Clip(user.Groups), auth.Unauthenticated)
	case user.Name != auth.Anonymous && !user.In(auth.Unauthenticated):
		user = user.AsAuthenticated()
	}
	return user
}

// refusedAlways returns why constrained impersonation never allows a user, or "".
func refusedAlways(wanted *auth.User) string {
	switch {
	case slices.Contains(wanted.Groups, ""):
		return "impersonating the empty string group is not allowed"
	case wanted.In(auth.Masters):
		return "impersonating the system:masters group is not allowed"
	}
	for key, values := range wanted.Extra {
		if errs := validation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key); len(errs) > 0 {
			return fmt.Sprintf("impersonating an invalid key in extra is not allowed: %v", errs.ToAggregate())
		}
		switch {
		case key != strings.ToLower(key):
			return fmt.Sprintf("impersonating a non-lowercase key in extra is not allowed: %q", key)
		case len(values) == 0 || slices.Contains(values, ""):
			return "impersonating empty values in extra is not allowed"
		}
	}
	return ""
}

func values(extra map[string][]string) (n int) {
	for _, values := range extra {
		n += len(values)
	}
	return max(n, len(extra))
}

// impersonations yields the rights to the parts of a user, each as the resource on which
// it is needed: those of the verb impersonate name users and groups in the core group, all
// others in authentication.k8s.io.
func impersonations(by auth.User, path, verb string, wanted *auth.User, many bool) iter.Seq[auth.Attributes] {
	right := auth.Attributes{User: by, Verb: verb, Path: path, Group: authenticationv1.GroupName, Version: "v1"}
	of := func(resource, subresource, name string) auth.Attributes {
		a := right
		a.Resource, a.Subresource, a.Name = resource, subresource, name
		return a
	}
	core := func(resource, name string) auth.Attributes {
		a := of(resource, "", name)
		if verb == verbImpersonate {
			a.Group = ""
		}
		return a
	}
	who := core("users", wanted.Name)
	if namespace, name, ok := auth.SplitServiceAccount(wanted.Name); ok {
		who = core("serviceaccounts", name)
		who.Namespace = namespace
	} else if node, ok := nodeName(wanted.Name); ok && verb != verbImpersonate {
		who = core("nodes", node)
	}
	groups := distinct(wanted.Groups)
	if many && len(wanted.Groups) >= manyParts {
		groups = []string{all}
	}
	return func(yield func(auth.Attributes) bool) {
		if !yield(who) {
			return
		}
		for _, group := range groups {
			if !yield(core("groups", group)) {
				return
			}
		}
		if wanted.UID != "" && !yield(of("uids", "", wanted.UID)) {
			return
		}
		if many && values(wanted.Extra) >= manyParts {
			yield(of("userextras", all, all))
			return
		}
		for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
			for _, value := range distinct(wanted.Extra[key]) {
				if !yield(of("userextras", key, value)) {
					return
				}
			}
		}
	}
}

// distinct returns each of the values once: a right is decided about for all groups of the user who asks, and that
// user's groups, and those that are asked for, may each be thousands.
func distinct(values []string) []string {
	if len(values) < 2 {
		return values
	}
	seen, once := make(sets.Set[string], len(values)), make([]string, 0, len(values))
	for _, value := range values {
		if !seen.Has(value) {
			seen.Insert(value)
			once = append(once, value)
		}
	}
	if len(once) == len(values) {
		return values // which is kept anyway
	}
	return once
}
