package differential

import (
	"net/http"
	"slices"
	"testing"
)

// deletable is an object that can be deleted.
func deletable(t *testing.T) (*catalog, *object) {
	t.Helper()
	c, k := widgets(t)
	k.verbs = []string{deleteOne, deleteCollection}
	return c, widget(t, k)
}

func TestDeletesHaveNames(t *testing.T) {
	c, o := deletable(t)
	all := generate([]*object{o}, allVerbs, 1, 3000)
	if len(all) != 3000 {
		t.Errorf("%d requests in place of 3000", len(all))
	}
	for _, r := range all {
		parsed, err := parseRequest(c, r.String())
		if err != nil {
			t.Fatal(err)
		}
		if parsed.String() != r.String() {
			t.Errorf("%q was read as %q", r, parsed)
		}
		if _, err := r.message(o.value); err != nil {
			t.Error(err)
		}
	}
	if sorted := slices.Sorted(slices.Values(names(all))); len(slices.Compact(sorted)) != len(all) {
		t.Error("a request comes twice")
	}
}

func TestDeleteMessages(t *testing.T) {
	c, o := deletable(t)
	for _, test := range []struct {
		name, query, body string
		real              bool
	}{
		{`delete example.com/v1 Widget small`, `dryRun=All`, ``, false},
		{`delete example.com/v1 Widget small query.gracePeriodSeconds="0"`, `dryRun=All&gracePeriodSeconds=0`, ``, false},
		{`delete example.com/v1 Widget small query.dryRun=["All","Invented"]`, `dryRun=All&dryRun=Invented`, ``, false},
		{`delete example.com/v1 Widget small query.dryRun=absent`, ``, ``, true},
		{`delete example.com/v1 Widget small body={}`, `dryRun=All`, `{}`, true},
		{`delete example.com/v1 Widget small body="{"`, `dryRun=All`, `{`, true},
		{`delete example.com/v1 Widget small body={"dryRun":["All"]} body.preconditions.uid=stored`, `dryRun=All`, `{"dryRun":["All"],"preconditions":{"uid":"1-2"}}`, false},
		{`delete example.com/v1 Widget small body={"dryRun":["All"]} body.dryRun=[]`, `dryRun=All`, `{"dryRun":[]}`, true},
		{`deletecollection example.com/v1 Widget small`, `dryRun=All&fieldSelector=metadata.name%3Dexample`, ``, false},
		{`create example.com/v1 Widget small`, ``, literal(o.value), false},
	} {
		r, err := parseRequest(c, test.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.real(); got != test.real {
			t.Errorf("%s: real %v", test.name, got)
		}
		if r, err = r.fill(decode(t, `{"metadata":{"uid":"1-2"}}`)); err != nil {
			t.Fatal(err)
		}
		m, err := r.message(o.value)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte{}
		if m.body != nil {
			if body, err = bodyOf(m.body); err != nil {
				t.Fatal(err)
			}
		}
		if m.query != test.query || string(body) != test.body {
			t.Errorf("%s: %s with %s", test.name, m.query, body)
		}
	}
}

// TestRealDeletesAreAlone: what another request finds is not what a delete has left.
func TestRealDeletesAreAlone(t *testing.T) {
	c, _ := deletable(t)
	var requests []*request
	for _, name := range []string{
		`delete example.com/v1 Widget small`, `delete example.com/v1 Widget small query.dryRun=absent`, `deletecollection example.com/v1 Widget small`,
		`delete example.com/v1 Widget small body={}`,
	} {
		r, err := parseRequest(c, name)
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r)
	}
	var sizes []int
	for _, batch := range batches(requests) {
		sizes = append(sizes, len(batch))
	}
	if !slices.Equal(sizes, []int{2, 1, 1}) {
		t.Errorf("batches of %v requests", sizes)
	}
}

// TestCompareAfter: what is left is compared, too.
func TestCompareAfter(t *testing.T) {
	_, o := deletable(t)
	gone := &answer{Code: http.StatusOK, After: &answer{Code: http.StatusNotFound, Body: decode(t, `{"reason":"NotFound"}`)}}
	left := &answer{Code: http.StatusOK, After: &answer{Code: http.StatusOK, Body: decode(t, `{"metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z"}}`)}}
	found := compare(&request{verb: deleteOne, kind: o.kind, base: small}, normalise(left, o.kind, nil), normalise(gone, o.kind, nil))
	if len(found) != 1 || found[0].class != oursAccepts || found[0].at != "after it: N NotFound " {
		t.Errorf("%v", found)
	}
	if found := compare(&request{verb: deleteOne, kind: o.kind, base: small}, left, left); len(found) > 0 {
		t.Errorf("the same differs: %v", found)
	}
}

// TestDeclaredDefinitions: that definitions of a collection stay until their objects are gone is declared,
// and nothing like it of other kinds.
func TestDeclaredDefinitions(t *testing.T) {
	declared, err := parseDeclarations(declaredYAML)
	if err != nil {
		t.Fatal(err)
	}
	gone := `{"reason":"NotFound","message":"customresourcedefinitions.apiextensions.k8s.io \"widgets.example.com\" not found"}`
	for _, test := range []struct {
		kind groupVersionKind
		want bool
	}{
		{groupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, true},
		{groupVersionKind{Version: "v1", Kind: "ConfigMap"}, false},
	} {
		found := compare(&request{verb: deleteCollection, kind: &kind{groupVersionKind: test.kind}, base: small},
			&answer{Code: http.StatusOK, After: &answer{Code: http.StatusOK, Body: decode(t, `{"metadata":{"finalizers":["a"]}}`)}},
			&answer{Code: http.StatusOK, After: &answer{Code: http.StatusNotFound, Body: decode(t, gone)}})
		if len(found) != 1 || (declared.find(&found[0]) != nil) != test.want {
			t.Errorf("%v: %v, to be declared: %t", test.kind, found, test.want)
		}
	}
}
