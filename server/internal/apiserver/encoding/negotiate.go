package encoding

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Media is a wire encoding.
type Media uint8

// The wire encodings.
const (
	JSON Media = iota
	YAML
	Protobuf
	CBOR
)

var mediaNames = [...]string{
	JSON:     "application/json",
	YAML:     "application/yaml",
	Protobuf: "application/vnd.kubernetes.protobuf",
	CBOR:     "application/cbor",
}

// cborSequence names a watch in CBOR (RFC 8742). Clients ask for it by either
// name.
const cborSequence = "application/cbor-seq"

// Shape is what an object or a list is turned into before it is encoded.
type Shape uint8

// The shapes.
const (
	AsObject Shape = iota
	AsTable
	AsMetadata // PartialObjectMetadata, or its list
)

// Form is the form of an answer that client and server agree on.
type Form struct {
	Media       Media
	As          Shape
	MetaVersion string // of meta.k8s.io, for tables and metadata: "v1" or "v1beta1"
	Pretty      bool
}

// ContentType names the form of an answer that is not a stream.
func (a Form) ContentType() string { return mediaNames[a.Media] }

// StreamType names the form of a watch.
func (a Form) StreamType() string { return streamTypeOf(a.Media) }

// streamTypeOf returns the type of a stream of documents. Documents in JSON delimit
// themselves; the type for protobuf says that they are framed.
func streamTypeOf(m Media) string {
	switch m {
	case Protobuf:
		return mediaNames[m] + ";stream=watch"
	case CBOR:
		return cborSequence
	}
	return mediaNames[m]
}

// Offer is what an endpoint can answer in.
type Offer struct {
	media      []Media
	shapes     bool // tables and metadata, too
	shapesOnly bool // no objects
	list       bool // the answer is a collection: PartialObjectMetadataList
	stream     bool // a watch
	custom     bool // of a custom resource
}

// For returns the offer without the encodings that a resource does not have.
func (f Offer) For(res *resource.Resource) Offer {
	f.custom = isCustom(res)
	return f
}

// What endpoints offer: any object of the scheme, which is no table; one object of a
// resource; a collection; a watch.
var (
	PlainOffer  = Offer{media: []Media{JSON, YAML, Protobuf, CBOR}}
	ObjectOffer = Offer{media: []Media{JSON, YAML, Protobuf, CBOR}, shapes: true}
	ListOffer   = Offer{media: []Media{JSON, YAML, Protobuf, CBOR}, shapes: true, list: true}
	WatchOffer  = Offer{media: []Media{JSON, Protobuf, CBOR}, shapes: true, stream: true}
	// WindowOffer is a watch with events that no other watch has, and without whole objects.
	WindowOffer = Offer{media: []Media{JSON}, shapes: true, shapesOnly: true, stream: true}
)

// Negotiate picks the first form of the Accept header, best quality first,
// that the endpoint offers. No header means JSON, if objects are offered. The error is a 406.
func Negotiate(r *http.Request, offer Offer) (Form, error) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	pretty := offer.pretty(r)
	if strings.TrimSpace(header) == "" && !offer.shapesOnly {
		return Form{Media: JSON, Pretty: pretty}, nil
	}
	for _, clause := range ParseAccept(header) {
		if form, ok := offer.match(clause); ok {
			if clause.Params["pretty"] == "1" {
				pretty = true
			}
			form.Pretty = pretty
			return form, nil
		}
	}
	return Form{}, status.NotAcceptable(offer.describe())
}

// interactive are the beginnings of the User-Agents of programs whose users read what they get.
var interactive = []string{"curl", "Wget", "Mozilla/5.0"}

// pretty reports whether an answer in JSON is indented: as the query says, or else because a
// person may read it. Streams are not, one line is one event.
func (f Offer) pretty(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		if query := r.URL.Query(); query.Has("pretty") {
			return request.IsTrue(query, "pretty")
		}
	}
	// The page at /ui/ is a program in a browser.
	return !f.stream && r.Header.Get("Levelwire-Ui") == "" && slices.ContainsFunc(interactive, func(agent string) bool { return strings.HasPrefix(r.UserAgent(), agent) })
}

// differenceOffer is what the objects of a difference can be encoded as.
var differenceOffer = Offer{media: []Media{JSON, Protobuf}, shapes: true, list: true}

// NegotiateDifference is negotiate for a difference, which has no tables and no
// indentation.
func NegotiateDifference(r *http.Request, res *resource.Resource) (Form, error) {
	form, err := Negotiate(r, differenceOffer.For(res))
	if err == nil && form.As == AsTable {
		err = status.NotAcceptable(differenceOffer.describe())
	}
	form.Pretty = false
	return form, err
}

// AcceptClause is one alternative of an Accept header.
type AcceptClause struct {
	MediaType string // "application/json"
	quality   float64
	Params    map[string]string // lower-case keys, without q
}

// maxAcceptClauses bounds the work that a header can ask for. Real clients
// send up to five.
const maxAcceptClauses = 32

// ParseAccept returns the alternatives, the preferred ones first. Clauses that
// cannot be parsed, or that have quality zero, are left out.
func ParseAccept(header string) []AcceptClause {
	var clauses []AcceptClause
	for part := range strings.SplitSeq(header, ",") {
		if len(clauses) == maxAcceptClauses {
			break
		}
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || kind == "" {
			continue
		}
		c := AcceptClause{MediaType: kind, quality: 1, Params: params}
		if q, ok := params["q"]; ok {
			c.quality, err = strconv.ParseFloat(q, 64)
			if err != nil || !(c.quality > 0 && c.quality <= 1) {
				continue
			}
			delete(params, "q")
		}
		clauses = append(clauses, c)
	}
	slices.SortStableFunc(clauses, func(a, b AcceptClause) int { return cmp.Compare(b.quality, a.quality) })
	return clauses
}

// match returns the form that a clause asks for, if it is offered.
func (f Offer) match(c AcceptClause) (Form, bool) {
	form := Form{}
	switch c.MediaType {
	case "*/*":
		// Kubernetes answers application/* with 406; only */* is any.
		form.Media = f.media[0]
	case "text/yaml", "application/x-yaml":
		form.Media = YAML
	case cborSequence:
		if form.Media = CBOR; !f.stream {
			return form, false
		}
	default:
		i := slices.Index(mediaNames[:], c.MediaType)
		if i < 0 {
			return form, false
		}
		form.Media = Media(i)
	}
	if !slices.Contains(f.media, form.Media) || !f.encodes(form.Media, c.Params["as"]) {
		return form, false
	}
	if stream := c.Params["stream"]; f.stream && stream != "" && stream != "watch" {
		return form, false
	}
	ok := f.matchShape(c.Params, &form) // not in the return: Go does not say which operand is read first
	return form, ok
}

// encodes reports whether a shape can be encoded: tables, whose cells may be
// anything, exist only as JSON and YAML, and custom resources have no protobuf.
func (f Offer) encodes(m Media, as string) bool {
	if as == "Table" {
		return m == JSON || m == YAML
	}
	return m != Protobuf || !f.custom || as != ""
}

// matchShape reads as, g and v. A shape that is unknown here, an APIGroupList
// of aggregated discovery for example, does not match.
func (f Offer) matchShape(params map[string]string, form *Form) bool {
	as, ok := params["as"]
	if !ok {
		return !f.shapesOnly
	}
	if !f.shapes || params["g"] != "meta.k8s.io" {
		return false
	}
	form.MetaVersion = params["v"]
	if form.MetaVersion != "v1" && form.MetaVersion != "v1beta1" {
		return false
	}
	switch {
	case as == "Table":
		form.As = AsTable
	case as == "PartialObjectMetadataList" && f.list, as == "PartialObjectMetadata" && !f.list:
		form.As = AsMetadata
	default:
		return false
	}
	return true
}

func (f Offer) describe() string {
	var names []string
	for _, m := range f.media {
		name := mediaNames[m]
		if f.stream {
			name = streamTypeOf(m)
		}
		if f.shapesOnly {
			names = append(names, name+";as=Table;v=v1;g=meta.k8s.io", name+";as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
			continue
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
