package registry

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	seen := make(sets.Set[ownerKey], len(refs))
	kept, duplicates := make([]metav1.OwnerReference, 0, len(refs)), []string(nil)
	for i := range refs {
		if key := ownerKeyOf(&refs[i]); seen.Has(key) {
			duplicates = append(duplicates, string(refs[i].UID))
		} else {
			seen.Insert(key)
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

// ownerKey is an owner reference as a key. Its flags are what they point to, or nil.
type ownerKey struct {
	apiVersion, kind, name  string
	uid                     types.UID
	controller, blocksOwner any
}

func ownerKeyOf(ref *metav1.OwnerReference) ownerKey {
	key := ownerKey{apiVersion: ref.APIVersion, kind: ref.Kind, name: ref.Name, uid: ref.UID}
	if ref.Controller != nil {
		key.controller = *ref.Controller
	}
	if ref.BlockOwnerDeletion != nil {
		key.blocksOwner = *ref.BlockOwnerDeletion
	}
	return key
}
