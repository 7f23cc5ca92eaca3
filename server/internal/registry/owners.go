package registry

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Warnings about owner references that an object has twice. Clients know these texts.
const (
	duplicateOwners = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, " +
		"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s"
	duplicateOwnersAfterAdmission = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, " +
		"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s"
)

// mergeOwners leaves one of each owner reference that the object has several times, and
// remembers to warn of that. A patch is judged by what comes of it, as what admission has added.
func (w *pendingWrite) mergeOwners(admitted bool) {
	if w.action != create && w.action != replace {
		return
	}
	refs := w.object.GetOwnerReferences()
	if len(refs) < 2 {
		return
	}
	kept, duplicates := make([]metav1.OwnerReference, 0, len(refs)), []string(nil)
	for i := range refs {
		if hasOwner(kept, &refs[i]) {
			duplicates = append(duplicates, string(refs[i].UID))
		} else {
			kept = append(kept, refs[i])
		}
	}
	if duplicates == nil {
		return
	}
	w.object.SetOwnerReferences(kept)
	text := duplicateOwners
	if u, ok := w.verb.(*update); admitted || ok && u.patches {
		text = duplicateOwnersAfterAdmission
	}
	w.ownersWarning = fmt.Sprintf(text, strings.Join(duplicates, ", "))
}

func hasOwner(refs []metav1.OwnerReference, ref *metav1.OwnerReference) bool {
	for i := range refs {
		if refs[i].UID == ref.UID && equality.Semantic.DeepEqual(&refs[i], ref) {
			return true
		}
	}
	return false
}
