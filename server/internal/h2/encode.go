package h2

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// headerTable is the largest compression table that the server keeps for a client
// that allows one.
const headerTable = 4096

// fieldList holds the fields of an answer as they are sent. They are copied from
// the handler's map when it calls WriteHeader: later changes have no effect.
type fieldList struct {
	list             []hpack.HeaderField
	hasType, hasDate bool
}

var fieldLists = sync.Pool{New: func() any { return &fieldList{list: make([]hpack.HeaderField, 0, 16)} }}

func getFields() *fieldList { return fieldLists.Get().(*fieldList) }

func (f *fieldList) put() {
	clear(f.list)
	*f = fieldList{list: f.list[:0]}
	fieldLists.Put(f)
}

func (f *fieldList) add(name, value string) {
	// Values that are different every time would only evict other fields from the
	// compression's table.
	unique := name == "content-length" || name == "audit-id" || name == "etag"
	f.list = append(f.list, hpack.HeaderField{Name: name, Value: value, Sensitive: unique})
}

// addHeader adds a handler's fields, except those that HTTP/2 forbids and the
// content-length, which WriteHeader checks.
func (f *fieldList) addHeader(header http.Header) {
	for key, values := range header {
		name := lowerName(key)
		switch name {
		case "", "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "content-length":
			continue
		case "content-type":
			f.hasType = true
		case "date":
			f.hasDate = true
		}
		for _, value := range values {
			if httpguts.ValidHeaderFieldValue(value) {
				f.add(name, value)
			}
		}
	}
}

// lowerName returns a field's name as HTTP/2 spells it, or "" if it is not valid.
func lowerName(key string) string {
	switch key {
	case "Content-Type":
		return "content-type"
	case "Content-Length":
		return "content-length"
	case "Cache-Control":
		return "cache-control"
	case "Content-Encoding":
		return "content-encoding"
	case "Audit-Id":
		return "audit-id"
	case "Date":
		return "date"
	case "Vary":
		return "vary"
	case "Warning":
		return "warning"
	}
	if !httpguts.ValidHeaderFieldName(key) {
		return ""
	}
	return strings.ToLower(key)
}

// headerSink is the encoder's writer: it appends to the output's buffer.
type headerSink output

// Write implements io.Writer.
func (s *headerSink) Write(p []byte) (int, error) {
	b := (*output)(s).open()
	*b = append(*b, p...)
	return len(p), nil
}

// appendHeaders appends a HEADERS frame, and CONTINUATION frames if it is too
// long for one. c.mu is held: blocks must be sent in the order in which they
// were encoded.
func (st *stream) appendHeaders(code int, fields *fieldList, end bool) {
	c := st.conn
	b := c.out.open()
	start := len(*b)
	*b = frame.AppendHeader(*b, 0, http2.FrameHeaders, 0, st.id)
	c.encode(hpack.HeaderField{Name: ":status", Value: statusText(code)})
	if fields != nil {
		for _, f := range fields.list {
			c.encode(f)
		}
	}
	size := len(*b) - start - frame.HeaderSize
	flags := http2.FlagHeadersEndHeaders
	if end {
		flags |= http2.FlagHeadersEndStream
	}
	if size <= c.peerFrameSize {
		frame.AppendHeader((*b)[:start], size, http2.FrameHeaders, flags, st.id)
		return
	}
	block := append([]byte(nil), (*b)[start+frame.HeaderSize:]...)
	*b = (*b)[:start]
	kind := http2.FrameHeaders
	flags &^= http2.FlagHeadersEndHeaders
	for len(block) > 0 {
		n := min(len(block), c.peerFrameSize)
		if n == len(block) {
			flags |= http2.FlagHeadersEndHeaders
		}
		*b = append(frame.AppendHeader(*b, n, kind, flags, st.id), block[:n]...)
		kind, flags, block = http2.FrameContinuation, 0, block[n:]
	}
}

func (c *conn) encode(f hpack.HeaderField) {
	_ = c.encoder.WriteField(f) // a headerSink does not fail
}

func statusText(code int) string {
	switch code {
	case http.StatusOK:
		return "200"
	case http.StatusCreated:
		return "201"
	case http.StatusNotFound:
		return "404"
	case http.StatusConflict:
		return "409"
	}
	return strconv.Itoa(code)
}

// dateText is the Date of answers of one second.
type dateText struct {
	second int64
	text   string
}

var lastDate atomic.Pointer[dateText]

func date() string {
	now := time.Now()
	if d := lastDate.Load(); d != nil && d.second == now.Unix() {
		return d.text
	}
	d := &dateText{second: now.Unix(), text: now.UTC().Format(http.TimeFormat)}
	lastDate.Store(d)
	return d.text
}
