package customresource

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// standardFinalizers are those without a domain that have a meaning.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}

// finalizerWarnings are about new finalizers whose names others could choose, too.
// old is nil for a new object.
func finalizerWarnings(obj, old resource.Object) []string {
	finalizers := obj.GetFinalizers()
	if len(finalizers) == 0 {
		return nil
	}
	added := slices.Compact(slices.Sorted(slices.Values(finalizers)))
	if old != nil {
		had := sets.New(old.GetFinalizers()...)
		added = slices.DeleteFunc(added, had.Has)
	}
	var warnings []string
	for _, name := range added {
		say := func(text string) { warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: %s", name, text)) }
		for _, wrong := range validation.IsQualifiedName(name) {
			say(wrong)
		}
		switch {
		case strings.Contains(name, "/") || slices.Contains(standardFinalizers, name):
		case strings.Contains(name, "."):
			say("prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers")
		default:
			say("prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers")
		}
	}
	return warnings
}
