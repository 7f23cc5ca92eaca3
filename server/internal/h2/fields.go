package h2

import (
	"cmp"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// fieldCollector collects a header block's fields as they are decoded. After one
// that breaks a rule it keeps no more of them, but all must be decoded: the
// compression's state covers the whole connection.
type fieldCollector struct {
	limit   int // of the fields' size, as RFC 9113 section 6.5.2 counts it
	left    int
	wire    int // bytes of the encoded block so far
	fields  []hpack.HeaderField
	regular bool // pseudo header fields may not follow any more
	tooMany bool
	wrong   string // with the block; "" if nothing is
	// unsuited says what is wrong with a field that is valid in HTTP/1 alone. Such a
	// request is answered: Go's client sends one that was reset with PROTOCOL_ERROR again
	// and again, on new connections, for ever.
	unsuited string
}

func (f *fieldCollector) reset() {
	clear(f.fields)
	*f = fieldCollector{limit: f.limit, left: f.limit, fields: f.fields[:0]}
}

// size returns the size of the fields that are kept, as RFC 9113 section 6.5.2 counts it.
func (f *fieldCollector) size() int64 { return int64(f.limit - max(f.left, 0)) }

func (f *fieldCollector) add(h hpack.HeaderField) {
	if f.tooMany || f.wrong != "" {
		return
	}
	if f.left -= int(h.Size()); f.left < 0 {
		f.tooMany = true
		return
	}
	if strings.HasPrefix(h.Name, ":") {
		if f.regular {
			f.wrong = "a pseudo header field after others"
			return
		}
	} else {
		f.regular = true
		if !validName(h.Name) {
			f.wrong = "a header field's name has forbidden characters"
		}
		f.unsuited = cmp.Or(f.unsuited, checkSuited(h))
	}
	if !httpguts.ValidHeaderFieldValue(h.Value) {
		f.wrong = "a header field's value has forbidden characters"
	}
	f.fields = append(f.fields, h)
}

// checkSuited returns what is wrong with a field that is about connections of HTTP/1
// (RFC 9113 section 8.2.2), or "".
func checkSuited(h hpack.HeaderField) string {
	switch h.Name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return "a header field that is about HTTP/1 connections"
	case "te":
		if h.Value != "trailers" {
			return `a "te" that is not "trailers"`
		}
	}
	return ""
}

// validName reports whether a name is a token without upper-case letters.
func validName(name string) bool {
	if knownName(name) != "" {
		return true
	}
	if !httpguts.ValidHeaderFieldName(name) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return 'A' <= r && r <= 'Z' }) < 0
}

// knownName returns the canonical spelling of a name that requests often have,
// as http.Header wants it, or "". It is a switch because a table would have to
// be built at each start of the process.
func knownName(name string) string {
	switch name {
	case "accept":
		return "Accept"
	case "accept-encoding":
		return "Accept-Encoding"
	case "accept-language":
		return "Accept-Language"
	case "authorization":
		return "Authorization"
	case "cache-control":
		return "Cache-Control"
	case "content-encoding":
		return "Content-Encoding"
	case "content-length":
		return "Content-Length"
	case "content-type":
		return "Content-Type"
	case "cookie":
		return "Cookie"
	case "date":
		return "Date"
	case "expect":
		return "Expect"
	case "host":
		return "Host"
	case "if-match":
		return "If-Match"
	case "if-none-match":
		return "If-None-Match"
	case "impersonate-group":
		return "Impersonate-Group"
	case "impersonate-uid":
		return "Impersonate-Uid"
	case "impersonate-user":
		return "Impersonate-User"
	case "kubectl-command":
		return "Kubectl-Command"
	case "kubectl-session":
		return "Kubectl-Session"
	case "origin":
		return "Origin"
	case "referer":
		return "Referer"
	case "te":
		return "Te"
	case "trailer":
		return "Trailer"
	case "traceparent":
		return "Traceparent"
	case "user-agent":
		return "User-Agent"
	case "x-forwarded-for":
		return "X-Forwarded-For"
	}
	return ""
}

func canonicalName(name string) string {
	if known := knownName(name); known != "" {
		return known
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}
