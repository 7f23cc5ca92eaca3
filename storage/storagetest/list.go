package storagetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/levelwire/levelwire/storage"
)

var listCases = []testCase{
	{"EmptyRange", listEmpty},
	{"OnlyThePrefixInKeyOrder", listPrefix},
	{"EmptyPrefixIsEverything", listEverything},
	{"From", listFrom},
	{"PagesOfOneSnapshot", listPages},
	{"AtRevision", listAt},
	{"KeysOnly", listKeysOnly},
	{"Borrowed", listBorrowed},
	{"BorrowedWhileClosing", listBorrowedWhileClosing},
	{"FutureRevision", listFuture},
	{"ManyKeys", listMany},
}

func listEmpty(s *session) {
	rev := s.create("/a", "x")
	page := s.list("/b/", storage.ListOptions{Limit: 10})
	if len(page.Items) != 0 || page.More || page.Revision != rev {
		s.Fatalf("List of an empty range: %v, more %v, revision %d; want nothing at %d", items(page), page.More, page.Revision, rev)
	}
}

func listPrefix(s *session) {
	var want []string
	for _, key := range []string{"/p/b", "/p/a", "/p", "/p/", "/p/c/d", "/p0", "/o/z", "/q", "/p/\xff", "/p/\xff\xff"} {
		rev := s.create(key, "v")
		if len(key) >= 3 && key[:3] == "/p/" {
			want = append(want, put(key, "v", rev))
		}
	}
	slices.Sort(want)
	got := items(s.list("/p/", storage.ListOptions{}))
	if !slices.Equal(got, want) {
		s.Fatalf("got %q, want %q", got, want)
	}
}

func listEverything(s *session) {
	a, b := s.create("/a", "x"), s.create("z", "y")
	want := []string{put("/a", "x", a), put("z", "y", b)}
	if got := items(s.list("", storage.ListOptions{})); !slices.Equal(got, want) {
		s.Fatalf("got %q, want %q", got, want)
	}
}

func listFrom(s *session) {
	revs := map[string]storage.Revision{}
	for _, key := range []string{"/f/a", "/f/b", "/f/c"} {
		revs[key] = s.create(key, "v")
	}
	s.create("/g", "v")
	b, c := put("/f/b", "v", revs["/f/b"]), put("/f/c", "v", revs["/f/c"])
	for _, test := range []struct {
		from string
		want []string
	}{
		{"/f/b", []string{b, c}},
		{"/f/a\x00", []string{b, c}},
		{"/f/c\x00", []string{}},
		{"/a", []string{put("/f/a", "v", revs["/f/a"]), b, c}},
		{"/z", []string{}},
	} {
		page := s.list("/f/", storage.ListOptions{From: test.from})
		if got := items(page); !slices.Equal(got, test.want) || page.More {
			s.Errorf("from %q: %q, more %v; want %q", test.from, got, page.More, test.want)
		}
	}
}

func listPages(s *session) {
	const count = 25
	var want []string
	for i := range count {
		key := fmt.Sprintf("/pages/%02d", i)
		want = append(want, put(key, "v", s.create(key, "v")))
	}
	for _, limit := range []int{1, 7, 24, 25, 26} {
		opts := storage.ListOptions{Limit: limit}
		var got []string
		for {
			page := s.list("/pages/", opts)
			if len(page.Items) > limit {
				s.Fatalf("limit %d: a page of %d", limit, len(page.Items))
			}
			got = append(got, items(page)...)
			if opts.At != 0 && page.Revision != opts.At {
				s.Fatalf("a page at %d reports revision %d", opts.At, page.Revision)
			}
			if !page.More {
				break
			}
			// A write between two pages must not show in the later one.
			s.create(fmt.Sprintf("/pages/24/%d/%d", limit, len(got)), "late")
			opts.At, opts.From = page.Revision, page.Items[len(page.Items)-1].Key+"\x00"
		}
		if !slices.Equal(got, want) {
			s.Fatalf("limit %d: %q, want %q", limit, got, want)
		}
		for _, kv := range s.list("/pages/24/", storage.ListOptions{}).Items {
			s.delete(kv.Key, kv.Modified)
		}
	}
}

func listAt(s *session) {
	a := s.create("/at/a", "1")
	b := s.create("/at/b", "1")
	a2 := s.update("/at/a", "2", a)
	s.create("/elsewhere", "x")
	gone := s.delete("/at/b", b)
	c := s.create("/at/c", "1")
	for _, test := range []struct {
		at   storage.Revision
		want []string
	}{
		{a, []string{put("/at/a", "1", a)}},
		{b, []string{put("/at/a", "1", a), put("/at/b", "1", b)}},
		{a2, []string{put("/at/a", "2", a2), put("/at/b", "1", b)}},
		{a2 + 1, []string{put("/at/a", "2", a2), put("/at/b", "1", b)}},
		{gone, []string{put("/at/a", "2", a2)}},
		{c, []string{put("/at/a", "2", a2), put("/at/c", "1", c)}},
	} {
		page := s.list("/at/", storage.ListOptions{At: test.at})
		if got := items(page); !slices.Equal(got, test.want) || page.Revision != test.at {
			s.Errorf("at %d: %q at %d, want %q", test.at, got, page.Revision, test.want)
		}
	}
}

// listKeysOnly expects keys and revisions without values, of now and of the past,
// and the values in lists that ask for them.
func listKeysOnly(s *session) {
	a, b := s.create("/k/a", "x"), s.create("/k/b", "y")
	latest := s.update("/k/a", "z", a)
	for _, test := range []struct {
		opts storage.ListOptions
		want []string
	}{
		{storage.ListOptions{KeysOnly: true}, []string{put("/k/a", "", latest), put("/k/b", "", b)}},
		{storage.ListOptions{KeysOnly: true, At: b}, []string{put("/k/a", "", a), put("/k/b", "", b)}},
		{storage.ListOptions{KeysOnly: true, From: "/k/b", Limit: 1}, []string{put("/k/b", "", b)}},
		{storage.ListOptions{}, []string{put("/k/a", "z", latest), put("/k/b", "y", b)}},
	} {
		if got := items(s.list("/k/", test.opts)); !slices.Equal(got, test.want) {
			s.Errorf("%+v: %q, want %q", test.opts, got, test.want)
		}
	}
}

// listBorrowed expects of lists whose values may be lent what it expects of others.
func listBorrowed(s *session) {
	long := strings.Repeat("x", 10_000)
	a, b := s.create("/k/a", "x"), s.create("/k/b", long)
	empty, gone := s.create("/k/c", ""), s.create("/k/d", "d")
	latest := s.update("/k/a", "z", a)
	s.delete("/k/d", gone)
	for _, test := range []struct {
		prefix string
		opts   storage.ListOptions
		want   []string
		more   bool
	}{
		{"/k/", storage.ListOptions{}, []string{put("/k/a", "z", latest), put("/k/b", long, b), put("/k/c", "", empty)}, false},
		{"/k/", storage.ListOptions{At: b}, []string{put("/k/a", "x", a), put("/k/b", long, b)}, false},
		{"/k/", storage.ListOptions{From: "/k/b", Limit: 1}, []string{put("/k/b", long, b)}, true},
		{"/k/", storage.ListOptions{KeysOnly: true, Limit: 1}, []string{put("/k/a", "", latest)}, true},
		{"", storage.ListOptions{From: "/k/c"}, []string{put("/k/c", "", empty)}, false},
		{"/none/", storage.ListOptions{}, nil, false},
	} {
		test.opts.Borrow = true
		page := s.list(test.prefix, test.opts)
		if got := items(page); !slices.Equal(got, test.want) || page.More != test.more {
			s.Errorf("%+v: %.100q, more %v, want %.100q", test.opts, got, page.More, test.want)
		}
		if page.Release != nil {
			page.Release()
		}
	}
	s.compact(latest)
	for at, want := range map[storage.Revision]error{b: storage.ErrCompacted, s.current() + 1: storage.ErrFutureRevision} {
		if page, err := s.List(s.ctx, "/k/", storage.ListOptions{At: at, Borrow: true}); !errors.Is(err, want) || page.Release != nil {
			s.Errorf("at %d: %v, lent: %v, want %v", at, err, page.Release != nil, want)
		}
	}
}

// listBorrowedWhileClosing expects Close to wait for the end of a loan.
func listBorrowedWhileClosing(s *session) {
	rev := s.create("/k/a", "x")
	page := s.list("/k/", storage.ListOptions{Borrow: true})
	if page.Release == nil {
		return // not lent
	}
	stream := s.watch("/", rev).stream
	var released atomic.Bool
	closed := make(chan error, 1)
	go func() {
		err := s.Close()
		if !released.Load() {
			err = errors.Join(err, errors.New("the store was closed during the loan"))
		}
		closed <- err
	}()
	for { // until Close has begun
		if _, err := stream.Next(); err != nil {
			break
		}
	}
	if got, want := items(page), put("/k/a", "x", rev); len(got) != 1 || got[0] != want {
		s.Errorf("the loan is %q, want %q", got, want)
	}
	released.Store(true)
	page.Release()
	if err := <-closed; err != nil {
		s.Error(err)
	}
}

func listFuture(s *session) {
	rev := s.create("/a", "x")
	if _, err := s.List(s.ctx, "/", storage.ListOptions{At: rev + 1}); !errors.Is(err, storage.ErrFutureRevision) {
		s.Fatalf("List at a future revision: %v, want %v", err, storage.ErrFutureRevision)
	}
}

// listMany reads more than an engine is likely to return in one piece, while
// the range changes.
func listMany(s *session) {
	const count = 3000
	revs := s.fill("/many/", count)
	at := s.current()
	s.delete("/many/00000", revs[0])
	page := s.list("/many/", storage.ListOptions{At: at})
	if len(page.Items) != count || page.More {
		s.Fatalf("got %d items, more %v; want %d", len(page.Items), page.More, count)
	}
	for i, kv := range page.Items {
		if kv.Key != fmt.Sprintf("/many/%05d", i) || kv.Modified != revs[i] {
			s.Fatalf("item %d is %s, want revision %d", i, put(kv.Key, string(kv.Value), kv.Modified), revs[i])
		}
	}
	if now := s.list("/many/", storage.ListOptions{}); len(now.Items) != count-1 {
		s.Fatalf("now: %d items, want %d", len(now.Items), count-1)
	}
	limited := s.list("/many/", storage.ListOptions{Limit: count - 2})
	if len(limited.Items) != count-2 || !limited.More {
		s.Fatalf("limit %d: %d items, more %v", count-2, len(limited.Items), limited.More)
	}
}
