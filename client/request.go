package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/levelwire/levelwire/client/internal/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// request is one call of a verb, before it is put into bytes: those depend on
// whether the server speaks protobuf.
type request struct {
	verb, method string
	path         string // below the server's base
	query        url.Values
	gvr          schema.GroupVersionResource
	name         string // for errors

	form     codec.Form
	list     bool // the answer is a list or a stream of events
	protobuf bool // the answer, and a body that can, may be protobuf

	body        runtime.Object // nil: raw
	raw         []byte
	contentType string // of raw
}

// call says which request a verb makes of an endpoint.
type call struct {
	verb, method string
	name         string
	named        bool // name must not be empty
	subresource  string
	query        any // a pointer to an options struct of metav1; nil: none
	body         runtime.Object
	raw          []byte
	contentType  string
	list         bool
}

// request checks a call and fills in what the endpoint knows.
func (r Resource[T]) request(q call) (*request, error) {
	path, err := r.path(q)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.verb, r.gvr.Resource, err)
	}
	out := &request{
		verb: q.verb, method: q.method, path: path, gvr: r.gvr, name: q.name,
		form: r.codec.Form(), list: q.list, protobuf: r.codec.CanProtobuf(),
		body: q.body, raw: q.raw, contentType: q.contentType,
	}
	if q.query != nil {
		if out.query, err = queryparams.Convert(q.query); err != nil {
			return nil, fmt.Errorf("%s %s: options: %w", q.verb, r.gvr.Resource, err)
		}
	}
	return out, nil
}

// path is where the endpoint is, below the server's base.
func (r Resource[T]) path(q call) (string, error) {
	if q.named && q.name == "" {
		return "", fmt.Errorf("the object's name is empty")
	}
	var b strings.Builder
	if r.gvr.Group == "" {
		b.WriteString("/api/")
	} else {
		b.WriteString("/apis/")
		b.WriteString(r.gvr.Group)
		b.WriteByte('/')
	}
	b.WriteString(r.gvr.Version)
	if r.namespace != "" {
		if err := segment("namespace", r.namespace); err != nil {
			return "", err
		}
		b.WriteString("/namespaces/")
		b.WriteString(r.namespace)
	}
	b.WriteByte('/')
	b.WriteString(r.gvr.Resource)
	if q.name != "" {
		if err := segment("name", q.name); err != nil {
			return "", err
		}
		b.WriteByte('/')
		b.WriteString(q.name)
	}
	if q.subresource != "" {
		b.WriteByte('/')
		b.WriteString(q.subresource)
	}
	return b.String(), nil
}

// segment refuses what would make a URL point elsewhere.
func segment(what, s string) error {
	if s == "." || s == ".." || strings.ContainsAny(s, "/%") {
		return fmt.Errorf("%s %q may not be \".\", \"..\" or contain \"/\" or \"%%\"", what, s)
	}
	return nil
}

// http puts the request into bytes. protobuf is what the server understands.
func (q *request) http(ctx context.Context, base *url.URL, protobuf bool) (*http.Request, int64, error) {
	protobuf = protobuf && q.protobuf
	data, contentType := q.raw, q.contentType
	if q.body != nil {
		var err error
		if data, contentType, err = codec.Encode(q.body, protobuf); err != nil {
			return nil, 0, err
		}
	}
	u := *base
	u.Path += q.path
	u.RawQuery = q.query.Encode()
	req, err := http.NewRequestWithContext(ctx, q.method, u.String(), bodyReader(data))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", codec.AcceptFor(q.form, q.list, protobuf))
	if q.verb == "watch" {
		// Compression would keep events in its window.
		req.Header.Set("Accept-Encoding", "identity")
	}
	if data != nil {
		req.Header.Set("Content-Type", contentType)
	}
	return req, int64(len(data)), nil
}

// joinSubresources makes a path of them.
func joinSubresources(names []string) string { return strings.Join(names, "/") }

// object sends a call whose answer is one object.
func (r Resource[T]) object(ctx context.Context, q call) (T, error) {
	var none T
	data, enc, err := r.roundTrip(ctx, q)
	if err != nil {
		return none, err
	}
	obj, err := r.codec.Decode(enc, data)
	if err != nil {
		return none, q.undecodable(r.gvr, err)
	}
	return obj, nil
}

// into sends a call whose answer is an object of another type. A create may be
// answered with a Status or with nothing, which leaves into as it is: the write
// has succeeded.
func (r Resource[T]) into(ctx context.Context, q call, into runtime.Object) error {
	// The answer is not in the endpoint's form, and not always in protobuf.
	req, err := r.request(q)
	if err != nil {
		return err
	}
	req.form, req.protobuf = codec.FormTyped, req.protobuf && codec.CanUnmarshalProtobuf(into)
	data, enc, err := r.client.readAll(ctx, req)
	if err != nil {
		return err
	}
	if q.verb == "create" && (len(data) == 0 || codec.KindOf(enc, data) == "Status") {
		return nil
	}
	if err := codec.DecodeInto(enc, data, into); err != nil {
		return q.undecodable(r.gvr, err)
	}
	return nil
}

// undecodable says that the answer, which is one object, was not understood.
func (q call) undecodable(gvr schema.GroupVersionResource, err error) error {
	return fmt.Errorf("%s %s %q: %w", q.verb, gvr.Resource, q.name, &DecodeError{What: "object", Err: err})
}

// discard sends a call whose answer matters only if it is an error.
func (r Resource[T]) discard(ctx context.Context, q call) error {
	_, _, err := r.roundTrip(ctx, q)
	return err
}

func (r Resource[T]) roundTrip(ctx context.Context, q call) ([]byte, codec.Encoding, error) {
	req, err := r.request(q)
	if err != nil {
		return nil, codec.EncodingUnknown, err
	}
	return r.client.readAll(ctx, req)
}

// List reads everything that opts selects, or one page of it. Objects are
// decoded while the answer arrives.
func (r Resource[T]) List(ctx context.Context, opts metav1.ListOptions) (*List[T], error) {
	opts.Watch = false
	req, err := r.request(call{verb: "list", method: http.MethodGet, query: &opts, list: true})
	if err != nil {
		return nil, err
	}
	ans, err := r.client.do(ctx, req)
	if err != nil {
		return nil, err
	}
	defer ans.close()
	list, err := decodeList(r.codec, ans.encoding(), codec.NewSource(ans, r.client.opts.MaxFrameBytes))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.gvr.Resource, contextError(ctx, err))
	}
	ans.drain()
	return list, nil
}

// decodeList reads a list, and says of an error whether it is the connection's or
// one of what came over it.
func decodeList[T Object](c *codec.Codec[T], enc codec.Encoding, src *codec.Source) (*List[T], error) {
	list, err := c.DecodeList(enc, src)
	if err != nil {
		return nil, streamError(src, "list", err)
	}
	return (*List[T])(list), nil
}

// streamError makes of what a decoder met within a list or an event the error of
// the connection, if that has ended, or else a DecodeError.
func streamError(src *codec.Source, what string, err error) error {
	if ended := src.ReadError(); ended != nil {
		return ended
	}
	return &DecodeError{What: what, Err: err}
}
