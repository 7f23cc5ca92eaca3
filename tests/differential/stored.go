package differential

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// stored is the literal of what the server has of a field. Each server has its own, so that it
// is filled in when the request is sent: a request with it has one name for both.
const stored = "stored"

// versionDemanded are the kinds of which an update is refused without the version that it is
// about, whatever else is wrong with it. TestVersionDemanded finds those that are missing.
var versionDemanded = []string{
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	"CustomResourceDefinition", "APIService", "ClusterTrustBundle", "PodCertificateRequest", "Lease",
	"RuntimeClass", "PodDisruptionBudget", "DeviceTaintRule", "CSIDriver", "CSINode", "CSIStorageCapacity",
	"VolumeAttachment", "StorageVersionMigration",
}

var versionPath = path{"metadata", "resourceVersion"}

// withVersion returns a request with the version that is stored, if an update of its kind
// demands one and no edit of its own decides on it.
func (r *request) withVersion() *request {
	if (r.verb != update && r.verb != updateStatus) || !matchesKind(versionDemanded, r.kind.String()) {
		return r
	}
	if slices.ContainsFunc(r.edits, func(e edit) bool { return related(e.at, versionPath) }) {
		return r
	}
	// A copy: requests may share the array of their edits.
	edits := append(slices.Clone(r.edits), edit{versionPath, stored})
	return &request{r.verb, r.kind, r.base, edits}
}

// versioned returns requests with the versions that they need.
func versioned(requests []*request) []*request {
	for i, r := range requests {
		requests[i] = r.withVersion()
	}
	return requests
}

// needsStored reports whether an edit takes what the server has.
func (r *request) needsStored() bool {
	return slices.ContainsFunc(r.edits, func(e edit) bool { return e.value == stored })
}

// fill returns the request with what the server has in the place of what stands for it.
func (r *request) fill(object map[string]any) (*request, error) {
	filled := &request{r.verb, r.kind, r.base, slices.Clone(r.edits)}
	for i, e := range filled.edits {
		if e.value != stored {
			continue
		}
		at := e.at
		if r.deletes() { // a precondition
			at = path{"metadata", e.at[len(e.at)-1]}
		}
		value, ok := get(object, at)
		if !ok {
			return nil, fmt.Errorf("%v: the server has nothing at %v", r, e.at)
		}
		filled.edits[i].value = literal(value)
	}
	return filled, nil
}

// askFilled asks a request with what is stored. A conflict with a controller that wrote in
// between is not what the request is about: it is asked again.
func (s *side) askFilled(ctx context.Context, r *request, base map[string]any) (*answer, error) {
	at := r.kind.path(namespace) + "/" + nameOf(base)
	var last *answer
	for before := ""; ; {
		current, err := s.do(ctx, http.MethodGet, at, asJSON, nil)
		if err == nil && !current.accepted() {
			err = s.refusal(http.MethodGet, at, current)
		}
		if err != nil {
			return nil, err
		}
		version, _ := get(current.Body, versionPath)
		if before == literal(version) {
			return last, nil
		}
		before = literal(version)
		filled, err := r.fill(current.Body)
		if err != nil {
			return nil, err
		}
		if last, err = s.askOnce(ctx, filled, base); err != nil || last.Code != http.StatusConflict {
			return last, err
		}
	}
}
