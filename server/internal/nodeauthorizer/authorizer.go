package nodeauthorizer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/rbac"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/follower"
)

const (
	// leaseNamespace has the heartbeats of nodes.
	leaseNamespace = "kube-node-lease"

	fieldNodeName = "spec.nodeName"
)

// Authorizer implements auth.Authorizer for users of the group system:nodes with names
// such as system:node:NAME. It has no opinion about others. It is safe for concurrent
// use.
type Authorizer struct {
	set        *registry.Set
	rules      *rbac.Rules
	mirrorPods bool
	index      *index
	follower   *follower.Follower
}

// Options are the parts of an Authorizer.
type Options struct {
	// Rules are what nodes may do with kinds that are not divided among them. Required.
	Rules []rbacv1.PolicyRule
	// MirrorPods lets nodes create pods. The admission plugin NodeRestriction must see to
	// it that they are mirror pods of the node.
	MirrorPods bool
	// Logger receives what operators should see. Required.
	Logger *slog.Logger
}

// New returns an Authorizer that looks up relations in the caches of a Set.
func New(set *registry.Set, opts Options) (*Authorizer, error) {
	pods, served := set.Lookup("", "v1", "pods")
	volumes, both := set.Lookup("", "v1", "persistentvolumes")
	if !served || !both || pods.Cache() == nil || volumes.Cache() == nil {
		return nil, errors.New("node authorizer: pods or volumes are not served")
	}
	nodeField, ok := pods.Resource().FieldIndex(fieldNodeName)
	if !ok {
		return nil, fmt.Errorf("node authorizer: pods have no field %s", fieldNodeName)
	}
	n := &Authorizer{set: set, rules: rbac.Compile(opts.Rules), mirrorPods: opts.MirrorPods}
	n.index, n.follower = newIndex(pods, volumes, nodeField, opts.Logger)
	return n, nil
}

// Run keeps relations in step with the caches until ctx ends, so that decisions seldom have
// to, and changes are reported.
func (n *Authorizer) Run(ctx context.Context) { n.follower.Run(ctx) }

// OnChange implements auth.ChangeNotifier: the kubelet of a node may have lost rights when
// the node has lost a pod, and any when a volume with secrets has changed. Changes are
// reported soon after the caches show them while Run runs.
func (n *Authorizer) OnChange(changed func(user string)) (stop func()) {
	return n.index.changes.OnChange(changed)
}

// Authorize implements auth.Authorizer.
func (n *Authorizer) Authorize(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
	node, ok := a.User.Node()
	switch {
	case !ok:
		return auth.NoOpinion, "", nil
	case node == "":
		return auth.NoOpinion, fmt.Sprintf("unknown node for user %q", a.User.Name), nil
	}
	v, err := n.decide(ctx, node, &a)
	if v.allowed && err == nil {
		return auth.Allow, "", nil
	}
	return auth.NoOpinion, v.reason, err
}

// Rules implements auth.RuleLister: what nodes may do depends on their pods.
func (n *Authorizer) Rules(_ context.Context, user auth.User, _ string) auth.Rules {
	if _, ok := user.Node(); ok {
		return auth.Rules{Incomplete: true, Problem: "node authorizer does not support user rule resolution"}
	}
	return auth.Rules{}
}

// verdict is whether the node may do what is asked, and if it may not, why.
type verdict struct {
	allowed bool
	reason  string
}

var allowed = verdict{allowed: true}

func refused(reason string) verdict { return verdict{reason: reason} }

func (n *Authorizer) decide(ctx context.Context, node string, a *auth.Attributes) (verdict, error) {
	if !a.OnResource() {
		return n.byRules(a), nil
	}
	switch (schema.GroupResource{Group: a.Group, Resource: a.Resource}).String() {
	case "secrets", "configmaps":
		return n.readNamespaced(ctx, node, a)
	case "persistentvolumeclaims":
		if a.Subresource == "status" {
			if a.Verb != "update" && a.Verb != "patch" {
				return refused("can only get/update/patch this type"), nil
			}
			return n.related(ctx, node, a)
		}
		return n.get(ctx, node, a)
	case "persistentvolumes", "resourceclaims.resource.k8s.io", "volumeattachments.storage.k8s.io":
		return n.get(ctx, node, a)
	case "serviceaccounts":
		return n.serviceAccount(ctx, node, a)
	case "leases.coordination.k8s.io":
		return lease(node, a), nil
	case "csinodes.storage.k8s.io":
		return csiNode(node, a), nil
	case "resourceslices.resource.k8s.io":
		return n.resourceSlice(ctx, node, a)
	case "podcertificaterequests.certificates.k8s.io":
		return n.podCertificateRequest(ctx, node, a)
	case "nodes":
		return ofNode(node, a), nil
	case "pods":
		return n.pod(ctx, node, a)
	}
	return n.byRules(a), nil
}

func (n *Authorizer) byRules(a *auth.Attributes) verdict {
	if n.rules.Allow(a) {
		return allowed
	}
	return refused("")
}

func isOneOf(verb string, verbs ...string) bool {
	for _, v := range verbs {
		if v == verb {
			return true
		}
	}
	return false
}

func (n *Authorizer) get(ctx context.Context, node string, a *auth.Attributes) (verdict, error) {
	switch {
	case a.Verb != "get":
		return refused("can only get individual resources of this type"), nil
	case a.Subresource != "":
		return refused("cannot get subresource"), nil
	}
	return n.related(ctx, node, a)
}

// readNamespaced allows the list and the watch of one object, too, which is how kubelets
// follow it.
func (n *Authorizer) readNamespaced(ctx context.Context, node string, a *auth.Attributes) (verdict, error) {
	switch {
	case !isOneOf(a.Verb, "get", "list", "watch"):
		return refused("can only read resources of this type"), nil
	case a.Subresource != "":
		return refused("cannot read subresource"), nil
	case a.Namespace == "":
		return refused("can only read namespaced object of this type"), nil
	}
	return n.related(ctx, node, a)
}

// related asks for the relation between the object and the node.
func (n *Authorizer) related(ctx context.Context, node string, a *auth.Attributes) (verdict, error) {
	if a.Name == "" {
		return refused("No Object name found"), nil
	}
	is, err := n.isRelated(ctx, node, a)
	if err != nil || is {
		return verdict{allowed: is}, err
	}
	return refused(fmt.Sprintf("no relationship found between node '%s' and this object", node)), nil
}

func (n *Authorizer) serviceAccount(ctx context.Context, node string, a *auth.Attributes) (verdict, error) {
	switch {
	case a.Verb == "get" && a.Subresource == "":
		return n.readNamespaced(ctx, node, a)
	case a.Verb != "create" || a.Name == "":
		return refused("can only create tokens for individual service accounts"), nil
	case a.Subresource != "token":
		return refused("can only create token subresource of serviceaccount"), nil
	}
	return n.related(ctx, node, a)
}

func lease(node string, a *auth.Attributes) verdict {
	switch {
	case !isOneOf(a.Verb, "get", "create", "update", "patch", "delete"):
		return refused("can only get, create, update, patch, or delete a node lease")
	case a.Namespace != leaseNamespace:
		return refused(fmt.Sprintf("can only access leases in the %q system namespace", leaseNamespace))
	case a.Verb != "create" && a.Name != node: // the name of a new one is not known yet
		return refused("can only access node lease with the same name as the requesting node")
	}
	return allowed
}

func csiNode(node string, a *auth.Attributes) verdict {
	switch {
	case a.Subresource == "status":
		return refused("CSINode status access requires CSIVolumeHealth feature")
	case a.Subresource != "":
		return refused("cannot authorize CSINode subresources")
	case !isOneOf(a.Verb, "get", "create", "update", "patch", "delete"):
		return refused("can only get, create, update, patch, or delete a CSINode")
	case a.Verb != "create" && a.Name != node:
		return refused("can only access CSINode with the same name as the requesting node")
	}
	return allowed
}

func (n *Authorizer) resourceSlice(ctx context.Context, node string, a *auth.Attributes) (verdict, error) {
	switch {
	case a.Subresource != "":
		return refused("cannot authorize ResourceSlice subresources"), nil
	case a.Verb == "create": // of which node it is, admission sees
		return allowed, nil
	case isOneOf(a.Verb, "get", "update", "patch", "delete"):
		return n.related(ctx, node, a)
	case !isOneOf(a.Verb, "watch", "list", "deletecollection"):
		return refused("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection"), nil
	case selectedNode(a) == node:
		return allowed, nil
	}
	return refused("can only list/watch/deletecollection resourceslices with nodeName field selector"), nil
}

func (n *Authorizer) podCertificateRequest(ctx context.Context, node string, a *auth.Attributes) (verdict, error) {
	switch {
	case a.Subresource != "":
		return refused("nodes may not access the status subresource of PodCertificateRequests"), nil
	case a.Verb == "create": // for which pod it is, admission sees
		return allowed, nil
	case a.Verb == "get":
		return n.related(ctx, node, a)
	case !isOneOf(a.Verb, "list", "watch"):
		return refused(fmt.Sprintf("nodes may not %s podcertificaterequests", a.Verb)), nil
	case selectedNode(a) == node:
		return allowed, nil
	}
	return refused("can only list/watch podcertificaterequests with nodeName field selector"), nil
}

// selectedNode returns the one node that the request's field selector leaves, or "".
func selectedNode(a *auth.Attributes) string {
	if !strings.Contains(a.FieldSelector, fieldNodeName) {
		return ""
	}
	parsed, err := fields.ParseSelector(a.FieldSelector)
	if err != nil {
		return ""
	}
	node, _ := parsed.RequiresExactMatch(fieldNodeName)
	return node
}

func ofNode(node string, a *auth.Attributes) verdict {
	switch {
	case a.Subresource == "" && isOneOf(a.Verb, "create", "update", "patch"):
		return allowed // that it is its own, admission sees
	case a.Subresource == "" && isOneOf(a.Verb, "get", "list", "watch"):
		switch a.Name {
		case node:
			return allowed
		case "":
			return refused(fmt.Sprintf("node '%s' cannot read all nodes, only its own Node object", node))
		}
		return refused(fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", node, a.Name))
	case a.Subresource == "status" && isOneOf(a.Verb, "update", "patch"):
		return allowed
	}
	return refused("")
}

func (n *Authorizer) pod(ctx context.Context, node string, a *auth.Attributes) (verdict, error) {
	switch a.Subresource {
	case "":
		switch a.Verb {
		case "get":
			return n.get(ctx, node, a)
		case "list", "watch":
			switch {
			case selectedNode(a) == node:
				return allowed, nil
			case a.Name != "":
				return n.related(ctx, node, a)
			}
			return refused("can only list/watch pods with spec.nodeName field selector"), nil
		case "create":
			// By a pod of its own making that refers to them, a node could read every secret and be
			// every service account.
			if !n.mirrorPods {
				return refused("nodes cannot create pods: the admission plugin NodeRestriction is disabled, so that nothing sees whether they are mirror pods"), nil
			}
			return allowed, nil
		case "delete": // that it is its own, admission sees
			return allowed, nil
		}
	case "status":
		if isOneOf(a.Verb, "update", "patch") {
			return allowed, nil
		}
	case "eviction":
		if a.Verb == "create" {
			return allowed, nil
		}
	}
	return refused(""), nil
}
