package workload

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

func written(attempt, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "a", UID: "u", ResourceVersion: version, Annotations: map[string]string{attemptAnnotation: attempt},
	}}
}

// TestJournalNotices: what a server may have is what it has acknowledged, or an attempt
// whose answer was lost, once.
func TestJournalNotices(t *testing.T) {
	const key = "default/a"
	lost := errors.New("the connection was lost")
	acknowledge := func(j *Journal) { j.put(t.Context(), key, written("1", ""), written("1", "10"), nil) }
	for name, test := range map[string]struct {
		happens func(j *Journal)
		got     *corev1.ConfigMap // nil: it does not exist
		wrong   bool
	}{
		"as acknowledged":        {acknowledge, written("1", "10"), false},
		"acknowledged and lost":  {acknowledge, nil, true},
		"changed by itself":      {acknowledge, written("1", "11"), true},
		"written by another":     {acknowledge, written("9", "11"), true},
		"never written":          {func(*Journal) {}, written("1", "10"), true},
		"a lost answer":          {func(j *Journal) { acknowledge(j); j.put(t.Context(), key, written("2", ""), nil, lost) }, written("2", "11"), false},
		"a lost create":          {func(j *Journal) { j.put(t.Context(), key, written("1", ""), nil, lost) }, written("1", "10"), false},
		"a lost deletion":        {func(j *Journal) { acknowledge(j); j.deleted(t.Context(), key, StampOf(written("1", "10")), lost) }, nil, false},
		"goes back":              {func(j *Journal) { acknowledge(j); j.put(t.Context(), key, written("2", ""), nil, lost) }, written("2", "9"), true},
		"deleted and back again": {func(j *Journal) { acknowledge(j); j.deleted(t.Context(), key, StampOf(written("1", "10")), nil) }, written("1", "12"), true},
		"a lost answer, twice": {func(j *Journal) {
			j.put(t.Context(), key, written("1", ""), nil, lost)
			j.found(t.Context(), key, written("1", "10"), nil)
			j.deleted(t.Context(), key, StampOf(written("1", "10")), nil)
		}, written("1", "12"), true},
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJournal(client.Resource[*corev1.ConfigMap]{})
			test.happens(j)
			var got Stamp
			if test.got != nil {
				got = StampOf(test.got)
			}
			if err := j.Check(key, got, test.got != nil); (err != nil) != test.wrong {
				t.Errorf("%v; wrong: %v", err, test.wrong)
			}
		})
	}
}
