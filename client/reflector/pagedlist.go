package reflector

import (
	"errors"
	"fmt"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/pagetoken"
)

// pagedList is what has been read of one list.
type pagedList[T client.Object] struct {
	most   int // objects; Options.MaxObjects
	least  int // for which a page counts
	count  int
	tokens pagetoken.Cycle
	all    []T           // of a list of one page
	some   collection[T] // of a list of several
}

// add adds a page. It returns an error for one that repeats an object, or leads to a page that
// was read before: it was sent in the place of another one. At a list of one page, as most
// are, it does not look.
func (p *pagedList[T]) add(page *client.List[T], first bool) error {
	if p.count += max(len(page.Items), p.least); p.count > p.most && page.Continue != "" {
		return tooManyObjects(p.most)
	}
	if first && page.Continue == "" {
		p.all = page.Items
		return nil
	}
	if page.Continue != "" && p.tokens.Closes(page.Continue) {
		return &client.DecodeError{What: "list", Err: errors.New("the server gave the same continue token twice")}
	}
	for _, obj := range page.Items {
		if p.some.put(obj) {
			return &client.DecodeError{What: "list", Err: fmt.Errorf("%q in namespace %q is in it twice", obj.GetName(), obj.GetNamespace())}
		}
	}
	return nil
}

// tooManyObjects is the error for a list that seems to have no end. It is none of what the server
// has sent: that would be asked for at once, too.
func tooManyObjects(most int) error {
	return fmt.Errorf("the server's list goes on after %d objects: raise Options.MaxObjects of the reflector if there are so many", most)
}

// items returns the objects; the pagedList must not be used after it.
func (p *pagedList[T]) items() []T {
	if p.all != nil {
		return p.all
	}
	return p.some.list()
}

// checkLaterPage returns an error unless a page can follow a first one of version. emptyLast
// is whether the last one may be empty: see Reflector.mayEndEmpty.
func checkLaterPage[T client.Object](list *client.List[T], version string, emptyLast bool) error {
	var err error
	switch {
	case list.ResourceVersion != version:
		err = fmt.Errorf("a page of resourceVersion %q follows one of %q", list.ResourceVersion, version)
	case len(list.Items) == 0 && (!emptyLast || list.Continue != ""): // there may be no end of those that others follow
		err = errors.New("a page without items follows others")
	default:
		return nil
	}
	return &client.DecodeError{What: "list", Err: err}
}

// mayEndEmpty reports whether an empty last page is believed. Some servers send one, but
// seldom; a broken answer looks the same, and what was behind it would be taken for deleted. So
// it is believed only of a server that was asked for everything at once, and sends pages all
// the same, and only if the store lacks a list, or its first one had such an end.
func (r *Reflector[T]) mayEndEmpty(limit int64) bool {
	known := r.LastSyncResourceVersion() != "" || r.unversioned
	return limit == 0 && (!known || r.endsEmpty)
}
