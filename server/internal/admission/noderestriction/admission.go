package noderestriction

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// Plugin is the admission plugin. It is safe for concurrent use.
type Plugin struct {
	set        *registry.Set
	authorizer auth.Authorizer
}

// New returns the Plugin, which finds nodes and pods in a Set. authorizer is asked whether
// a node may request tokens for an audience, and certificates of a signer, that its pods do
// not name.
func New(set *registry.Set, authorizer auth.Authorizer) *Plugin {
	return &Plugin{set: set, authorizer: authorizer}
}

// write is one write of a node.
type write struct {
	*registry.Request
	user auth.User
	node string // the name of the node that the user is
}

// Admit is the registry.Admission: it refuses what a node may not write. It has no say
// about other users.
func (p *Plugin) Admit(ctx context.Context, q *registry.Request) error {
	user, ok := auth.UserFrom(ctx)
	if !ok || q.Operation == registry.Remove {
		return nil // a part of this server, or the end of a write that was admitted
	}
	node, ok := user.Node()
	if !ok {
		return nil
	}
	w := &write{Request: q, user: user, node: node}
	if node == "" {
		return w.forbid("could not determine node from user %q", user.Name)
	}
	switch q.Resource.GroupResource().String() {
	case "pods":
		return p.admitPod(ctx, w)
	case "nodes":
		return w.checkNode()
	case "persistentvolumeclaims":
		return w.checkClaim()
	case "serviceaccounts":
		return p.admitToken(ctx, w)
	case "leases.coordination.k8s.io":
		return w.checkLease()
	case "csinodes.storage.k8s.io":
		return w.checkName("can only access CSINode with the same name as the requesting node")
	case "resourceslices.resource.k8s.io":
		return w.checkResourceSlice()
	case "certificatesigningrequests.certificates.k8s.io":
		return w.checkCertificateRequest()
	case "podcertificaterequests.certificates.k8s.io":
		return p.admitPodCertificateRequest(ctx, w)
	}
	return nil
}

// forbid returns the 403 of a write.
func (w *write) forbid(format string, args ...any) error {
	return apierrors.NewForbidden(w.Resource.GroupResource(), w.Name, fmt.Errorf(format, args...))
}

// checkName refuses objects that are not named after the node.
func (w *write) checkName(reason string) error {
	if w.Name != w.node {
		return apierrors.NewForbidden(w.Resource.GroupResource(), w.Name, errors.New(reason))
	}
	return nil
}
