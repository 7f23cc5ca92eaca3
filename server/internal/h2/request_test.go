package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

func fieldsOf(pairs ...string) *conn {
	c := &conn{}
	for i := 0; i < len(pairs); i += 2 {
		c.fields.fields = append(c.fields.fields, hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return c
}

// TestManyCookies: a client that is not authenticated yet can send a cookie field in
// a byte. They are joined once.
func TestManyCookies(t *testing.T) {
	pairs := []string{":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x"}
	for range 1500 {
		pairs = append(pairs, "cookie", "a=b")
	}
	c := fieldsOf(pairs...)
	var got string
	allocations := testing.AllocsPerRun(1, func() {
		in, wrong := c.request(frame.Header{})
		if wrong != "" {
			t.Fatal(wrong)
		}
		got = in.request.Header.Get("Cookie")
	})
	if want := strings.Repeat("a=b; ", 1500); got+"; " != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	if allocations > 100 {
		t.Errorf("%v allocations for 1,500 cookies", allocations)
	}
}

// TestHostThatDiffers: what one part of a system decides by :authority, another may
// decide by Host. RFC 9113 section 8.3.1.
func TestHostThatDiffers(t *testing.T) {
	for _, test := range []struct{ authority, host, want string }{
		{"a.example:6443", "a.example:6443", "a.example:6443"},
		{"a.example", "A.Example", "a.example"},
		{"", "a.example", "a.example"},
		{"a.example", "b.example", ""},
		{"a.example", "a.example:6443", ""},
	} {
		pairs := []string{":method", "GET", ":scheme", "https", ":path", "/"}
		if test.authority != "" {
			pairs = append(pairs, ":authority", test.authority)
		}
		in, wrong := fieldsOf(append(pairs, "host", test.host)...).request(frame.Header{})
		if (wrong == "") != (test.want != "") || wrong == "" && in.request.Host != test.want {
			t.Errorf("%+v: %q", test, wrong)
		}
	}
}
