package authorization

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// TestManyRequirements: every user may ask a review with as many as fit into a request.
func TestManyRequirements(t *testing.T) {
	const many = 90_000
	s := &authorizationv1.LabelSelectorAttributes{}
	for i := range many {
		s.Requirements = append(s.Requirements, metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", many-i), Operator: metav1.LabelSelectorOpExists})
	}
	s.Requirements[0].Operator = "?"
	text, err := labelSelectorOf(s)
	if err == nil || strings.Count(text, ",") != many-2 || !strings.HasPrefix(text, "k1,k10,") {
		t.Errorf("a selector of %d requirements, %.50q (%v)", strings.Count(text, ",")+1, text, err)
	}
}

// TestImpersonatedPartsAreBounded: a request names a limited number of rights to be asked for.
func TestImpersonatedPartsAreBounded(t *testing.T) {
	of := func(groups, values int) error {
		h := http.Header{"Impersonate-User": {"jane"}}
		for i := range groups {
			h.Add("Impersonate-Group", fmt.Sprint("g", i))
		}
		for i := range values {
			h.Add("Impersonate-Extra-Scopes", fmt.Sprint("s", i))
		}
		_, _, err := impersonated(h)
		return err
	}
	if err := errors.Join(of(maxParts, 0), of(0, maxParts), of(0, 0)); err != nil {
		t.Error(err)
	}
	for _, err := range []error{of(maxParts+1, 0), of(maxParts/2, maxParts), of(0, maxParts+1)} {
		if !apierrors.IsBadRequest(err) {
			t.Errorf("too many groups and values: %v", err)
		}
	}
}

// TestManyGroups: each group or value of an extra field is asked for once, however often the headers have it.
func TestManyGroups(t *testing.T) {
	wanted := auth.User{Name: "jane", Groups: strings.Split(strings.Repeat("dev,ops,", 1500)+"dev", ","), Extra: map[string][]string{"k": {"v", "w", "v"}}}
	var names []string
	for right := range impersonations(auth.User{}, "", verbImpersonate, &wanted, false) {
		names = append(names, right.Name)
	}
	if want := []string{"jane", "dev", "ops", "v", "w"}; !slices.Equal(names, want) {
		t.Errorf("%d rights, %q, want %q", len(names), names[:min(len(names), 10)], want)
	}
}

// TestRightsToImpersonateAreSmall: a watch keeps what it needs to impersonate a user of a thousand groups for as long as it
// is open. As a list in memory, that took 500 kB.
func TestRightsToImpersonateAreSmall(t *testing.T) {
	const watches = 50
	wanted := auth.User{Name: "jane"}
	for i := range maxParts {
		wanted.Groups = append(wanted.Groups, fmt.Sprint("g", i))
	}
	open := make([]Impersonation, watches)
	before := heap()
	for i := range open {
		request := auth.Attributes{User: auth.User{Name: "joe"}, Verb: "watch", Version: "v1", Resource: "pods", Namespace: fmt.Sprint("n", i)}
		open[i] = choose(alternativesOf(&wanted, request), 0)
	}
	each := (heap() - before) / watches
	rights := 0
	for _, needed := range open[0].Needed {
		rights += count(needed)
	}
	if rights != 2*maxParts+6 {
		t.Errorf("%d rights, want %d", rights, 2*maxParts+6)
	}
	if each > 40<<10 { // most of them are the groups of the user
		t.Errorf("what a watch keeps takes %d bytes", each)
	}
	t.Logf("%d bytes a watch", each)
	runtime.KeepAlive(open)
}

// heap returns how much of the heap is in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
