package job

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestIndexesReadAndWrite(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
		n     int
	}{
		{"", 5, "", 0}, {"0", 5, "0", 1}, {"0,1", 5, "0,1", 2}, {"0,1,2", 5, "0-2", 3}, {"3-4,0", 5, "0,3,4", 3},
		{"2-9", 5, "2-4", 3}, {"7", 5, "", 0}, {"x,1,-3,4-2", 5, "1", 1}, {"0-2,1-3", 9, "0-3", 4},
	} {
		got := parseIndexes(c.text, c.limit)
		if got.String() != c.want || got.len() != c.n {
			t.Errorf("%q below %d: %q with %d; want %q with %d", c.text, c.limit, got, got.len(), c.want, c.n)
		}
	}
}

// TestIndexSetAgainstAMap collects indexes in any order.
func TestIndexSetAgainstAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var spans []span
		model := map[int]bool{}
		for range random.IntN(40) {
			i := random.IntN(50)
			spans = append(spans, span{i, i})
			model[i] = true
		}
		set := collect(spans)
		if set.len() != len(model) || parseIndexes(set.String(), 50).String() != set.String() {
			t.Fatalf("%s has %d, the model %d", set, set.len(), len(model))
		}
		for i := range 50 {
			if set.has(i) != model[i] {
				t.Fatalf("%s: index %d", set, i)
			}
		}
		for _, i := range set.missing(nil, 50, 50) {
			if model[i] {
				t.Fatalf("%s: %d is not missing", set, i)
			}
		}
	}
	if got := parseIndexes("0,2", 6).missing(parseIndexes("3", 6), 6, 2); !slices.Equal(got, []int{1, 4}) {
		t.Errorf("missing %v", got)
	}
}

func FuzzParseIndexes(f *testing.F) {
	f.Add("0,2-4,9", 10)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit &= 1<<20 - 1
		set := parseIndexes(text, limit)
		if n := set.len(); n < 0 || n > limit {
			t.Fatalf("%d indexes below %d", n, limit)
		}
		if again := parseIndexes(set.String(), limit); again.String() != set.String() {
			t.Fatalf("%s is read as %s", set, again)
		}
	})
}

// TestMissingAfterMany: ranges of indexes are passed over at once. One by one, this took minutes.
func TestMissingAfterMany(t *testing.T) {
	const limit = math.MaxInt32
	all := indexSet{{0, limit - 6}, {limit - 4, limit - 4}}
	if got := all.missing(indexSet{{limit - 3, limit - 3}}, limit, 10); !slices.Equal(got, []int{limit - 5, limit - 2, limit - 1}) {
		t.Errorf("missing %v", got)
	}
}

// TestManyIndexes: the pods of a large job come in any order. The sets keep their place in memory while these are entered; when
// each pod's index was put between those before it, this moved 200,000 × 100,000 of them.
func TestManyIndexes(t *testing.T) {
	const many = 200_000
	a := &account{}
	job := &batchv1.Job{Spec: batchv1.JobSpec{CompletionMode: new(batchv1.IndexedCompletion)}}
	for i := range many {
		a.take(job, 2*(many-i))
		if len(a.taken) > 0 {
			t.Fatal("a set is changed for one pod")
		}
	}
	a.enter()
	if len(a.taken) != many || !a.taken.has(2) || a.taken.has(3) || !a.taken.has(2*many) {
		t.Errorf("%d ranges", len(a.taken))
	}
}

// TestManyRedundantPods: the older pod of an index is looked up. When each of a job's pods was compared with each, this
// took 10,000,000,000 comparisons.
func TestManyRedundantPods(t *testing.T) {
	const many = 100_000
	job := &batchv1.Job{Spec: batchv1.JobSpec{Completions: new(int32(many))}}
	books := &account{completed: indexSet{{7, 7}}}
	at := func(name string, index int) *corev1.Pod {
		pod := podOf(name, corev1.PodRunning)
		pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index)}
		return pod
	}
	for i := range many {
		books.active = append(books.active, at(fmt.Sprint("p", i), i))
	}
	later := at("later", 5)
	later.CreationTimestamp.Time = later.CreationTimestamp.Add(time.Second)
	books.active = append(books.active, later, at("a", 6), at("beyond", many), podOf("none", corev1.PodRunning))
	var names []string
	for _, pod := range redundant(job, books) {
		names = append(names, pod.Name)
	}
	if want := []string{"p6", "p7", "later", "beyond", "none"}; !slices.Equal(names, want) {
		t.Errorf("%v are redundant, want %v", names, want)
	}
}
