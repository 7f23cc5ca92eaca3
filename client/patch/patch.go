// Package patch makes the bodies of patches: JSON merge patches and strategic
// merge patches from two states of an object, and JSON patches from operations.
//
//	p, err := patch.StrategicMerge(old, changed, patch.Options{})
//	pod, err := pods.Patch(ctx, old.Name, p.Type, p.Data, metav1.PatchOptions{})
//
// To send a merge patch, client.Resource.MergePatch alone suffices. To say which
// fields a program wants, rather than what is to change, use
// client.Resource.Apply.
package patch

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/mergepatch"
)

// Patch is the body of a patch, with its media type, as the arguments of
// client.Resource.Patch.
type Patch struct {
	Type types.PatchType
	Data []byte
}

// IsEmpty reports whether the patch changes nothing. The server accepts it, but
// there is no need to send it.
func (p Patch) IsEmpty() bool {
	switch string(p.Data) {
	case "", "{}", "[]":
		return true
	}
	return false
}

// Options are the options of [Merge] and [StrategicMerge].
type Options struct {
	// OptimisticLock has the server refuse the patch with a conflict if the
	// object is no longer at the old object's resourceVersion.
	OptimisticLock bool
}

// Merge returns the JSON merge patch (RFC 7386) that turns old into changed. It
// replaces lists as a whole, so use OptimisticLock if a list has changed. Every
// kind accepts it.
func Merge[T client.Object](old, changed T, opts Options) (Patch, error) {
	difference, err := mergepatch.Of(old, changed)
	if err != nil {
		return Patch{}, err
	}
	return encode(types.MergePatchType, difference, old.GetResourceVersion(), opts)
}

// StrategicMerge returns the strategic merge patch that turns old into changed.
// It changes single elements of the lists that have keys, such as containers,
// volumes and ports. Servers accept it for built-in kinds, and answer 415 for custom
// resources: use [Merge] for these. An aggregated API server may accept it for its own
// kinds, so a registered type is not refused here. T must be a struct, because its tags
// say what the keys are.
func StrategicMerge[T client.Object](old, changed T, opts Options) (Patch, error) {
	if t := reflect.TypeFor[T](); t.Kind() != reflect.Pointer || t == reflect.TypeFor[*unstructured.Unstructured]() {
		return Patch{}, fmt.Errorf("a strategic merge patch needs a struct of the API, whose tags say how lists merge, not %v: use Merge", t)
	}
	before, after, err := mergepatch.Trees(old, changed)
	if err != nil {
		return Patch{}, err
	}
	difference := strategicDifference(before, after, reflect.TypeFor[T]())
	return encode(types.StrategicMergePatchType, difference, old.GetResourceVersion(), opts)
}

func encode(kind types.PatchType, difference map[string]any, version string, opts Options) (Patch, error) {
	if opts.OptimisticLock && len(difference) > 0 {
		if err := mergepatch.Lock(difference, version); err != nil {
			return Patch{}, err
		}
	}
	data, err := json.Marshal(difference)
	return Patch{kind, data}, err
}
