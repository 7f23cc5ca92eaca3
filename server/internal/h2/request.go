package h2

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// incoming is a request made of a HEADERS frame, for its stream.
type incoming struct {
	request http.Request // without a context of its own, for which newStream copies it
	length  int64        // of the body; -1: unknown
	expect  bool         // the client waits for "100 Continue"
}

// target are the pseudo header fields of a request (RFC 9113 section 8.3.1).
type target struct{ method, scheme, authority, path string }

func readTarget(fields []hpack.HeaderField) (t target, wrong string) {
	var seen target // "x" for fields that are present
	for _, f := range fields {
		var value, mark *string
		switch f.Name {
		case ":method":
			value, mark = &t.method, &seen.method
		case ":scheme":
			value, mark = &t.scheme, &seen.scheme
		case ":authority":
			value, mark = &t.authority, &seen.authority
		case ":path":
			value, mark = &t.path, &seen.path
		default:
			if !strings.HasPrefix(f.Name, ":") {
				return t, t.check(seen)
			}
			return t, "an unknown pseudo header field"
		}
		if *mark != "" {
			return t, "a pseudo header field that is there twice"
		}
		*value, *mark = f.Value, "x"
	}
	return t, t.check(seen)
}

func (t target) check(seen target) string {
	switch {
	case t.method == "" || !httpguts.ValidHeaderFieldName(t.method): // a method is a token, too
		return "a bad :method"
	case t.method == http.MethodConnect:
		if seen.path != "" || seen.scheme != "" || t.authority == "" {
			return "a CONNECT needs an :authority and nothing else"
		}
	case t.scheme != "https" && t.scheme != "http":
		return "a bad :scheme"
	case t.path == "*" && t.method == http.MethodOptions:
	case !strings.HasPrefix(t.path, "/"):
		return "a bad :path"
	}
	if !httpguts.ValidHostHeader(t.authority) || strings.Contains(t.authority, "@") {
		return "a bad :authority"
	}
	return ""
}

// request makes an http.Request of the fields that were decoded, or returns what
// is wrong with them.
func (c *conn) request(h frame.Header) (in incoming, wrong string) {
	f := &c.fields
	if f.wrong != "" {
		return in, f.wrong
	}
	if f.tooMany {
		return c.tooLargeRequest(), ""
	}
	t, wrong := readTarget(f.fields)
	if wrong != "" {
		return in, wrong
	}
	header, host, wrong := makeHeader(f.fields)
	if wrong != "" {
		return in, wrong
	}
	if host != "" && t.authority != "" && !strings.EqualFold(host, t.authority) {
		return in, "a host that is not the :authority" // RFC 9113 section 8.3.1
	}
	in.request = http.Request{
		Method: t.method, Host: t.authority, Header: header, RemoteAddr: c.remote, TLS: c.state,
		Proto: "HTTP/2.0", ProtoMajor: 2, RequestURI: t.path,
	}
	r := &in.request
	if r.Host == "" {
		r.Host = host
	}
	if t.method == http.MethodConnect {
		r.URL, r.RequestURI = &url.URL{Host: t.authority}, t.authority
	} else {
		u, err := url.ParseRequestURI(t.path)
		if err != nil {
			return in, "a bad :path"
		}
		r.URL = u
	}
	in.length, wrong = contentLength(header, h.Has(http2.FlagHeadersEndStream))
	if wrong != "" {
		return in, wrong
	}
	r.ContentLength = in.length
	if values := header["Expect"]; values != nil {
		in.expect = httpguts.HeaderValuesContainsToken(values, "100-continue")
		delete(header, "Expect")
	}
	return in, ""
}

// tooLargeRequest stands for a request whose fields were too many to keep.
func (c *conn) tooLargeRequest() incoming {
	return incoming{request: http.Request{URL: &url.URL{}, Header: make(http.Header), RemoteAddr: c.remote}, length: -1}
}

// makeHeader returns the regular fields without the host, the host, and what is
// wrong with the host.
func makeHeader(fields []hpack.HeaderField) (header http.Header, host, wrong string) {
	pseudo := 0 // they come first
	for pseudo < len(fields) && fields[pseudo].Name[0] == ':' {
		pseudo++
	}
	header = make(http.Header, len(fields)-pseudo)
	values := make([]string, len(fields)-pseudo) // one allocation for all
	fields = fields[pseudo:]
	var cookies []string
	for i, f := range fields {
		if f.Name == "host" {
			if host != "" || !httpguts.ValidHostHeader(f.Value) {
				return nil, "", "a bad host"
			}
			host = f.Value
			continue
		}
		name := canonicalName(f.Name)
		before, ok := header[name]
		switch {
		case name == "Cookie": // clients may split it, RFC 9113 section 8.2.3
			cookies = append(cookies, f.Value)
		case !ok:
			values[i] = f.Value
			header[name] = values[i : i+1 : i+1]
		default:
			header[name] = append(before, f.Value)
		}
	}
	if cookies != nil {
		header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	return header, host, ""
}

// contentLength returns the length of the body by its header; -1: there is none.
func contentLength(header http.Header, end bool) (length int64, wrong string) {
	values := header["Content-Length"]
	if len(values) == 0 {
		if end {
			return 0, ""
		}
		return -1, ""
	}
	for _, other := range values[1:] {
		if other != values[0] {
			return 0, "several content-lengths"
		}
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return 0, "a bad content-length"
	}
	if end && n > 0 {
		return 0, "a content-length and no content"
	}
	return int64(n), ""
}

// newStream adds a stream, and gives its request a context that ends with it. c.mu
// is held.
func (c *conn) newStream(h frame.Header, in incoming) (*stream, *http.Request) {
	ctx, cancel := context.WithCancel(c.values)
	if c.baseEnded {
		cancel()
	}
	r := in.request.WithContext(ctx)
	st := &stream{conn: c, id: h.Stream, ctx: ctx, cancel: cancel, sendWindow: c.initialWindow}
	st.answer = response{st: st, method: r.Method}
	r.Body = http.NoBody
	if h.Has(http2.FlagHeadersEndStream) {
		st.remoteClosed = true
	} else {
		st.body = &body{
			st: st, left: in.length, expect: in.expect,
			window: int64(c.server.options.StreamWindow),
		}
		r.Body = st.body
	}
	c.streams[st.id] = st
	return st, r
}
