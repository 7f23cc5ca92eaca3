package apiserver

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// media is a wire encoding.
type media uint8

const (
	mediaJSON media = iota
	mediaYAML
	mediaProtobuf
	mediaCBOR
)

var mediaNames = [...]string{
	mediaJSON:     "application/json",
	mediaYAML:     "application/yaml",
	mediaProtobuf: "application/vnd.kubernetes.protobuf",
	mediaCBOR:     "application/cbor",
}

// cborSequence names a watch in CBOR (RFC 8742). Clients ask for it by either
// name.
const cborSequence = "application/cbor-seq"

// shape is what an object or a list is turned into before it is encoded.
type shape uint8

const (
	asObject shape = iota
	asTable
	asMetadata // PartialObjectMetadata, or its list
)

// accepted is the form of an answer that client and server agree on.
type accepted struct {
	media   media
	as      shape
	version string // of meta.k8s.io, for tables and metadata: "v1" or "v1beta1"
	pretty  bool
}

// contentType names the form of an answer that is not a stream.
func (a accepted) contentType() string { return mediaNames[a.media] }

// streamType names the form of a watch.
func (a accepted) streamType() string { return streamTypeOf(a.media) }

// streamTypeOf names a stream of documents. Those of JSON delimit themselves;
// protobuf says that they are framed.
func streamTypeOf(m media) string {
	switch m {
	case mediaProtobuf:
		return mediaNames[m] + ";stream=watch"
	case mediaCBOR:
		return cborSequence
	}
	return mediaNames[m]
}

// forms is what an endpoint can answer in.
type forms struct {
	media  []media
	shapes bool // tables and metadata, too
	list   bool // the answer is a collection: PartialObjectMetadataList
	stream bool // a watch
	custom bool // of a custom resource
}

// offerFor narrows an offer to what a resource can be encoded as.
func offerFor(offer forms, res *resource.Resource) forms {
	offer.custom = isCustom(res)
	return offer
}

var (
	anyForm    = forms{media: []media{mediaJSON, mediaYAML, mediaProtobuf, mediaCBOR}}
	objectForm = forms{media: []media{mediaJSON, mediaYAML, mediaProtobuf, mediaCBOR}, shapes: true}
	listForm   = forms{media: []media{mediaJSON, mediaYAML, mediaProtobuf, mediaCBOR}, shapes: true, list: true}
	streamForm = forms{media: []media{mediaJSON, mediaProtobuf, mediaCBOR}, shapes: true, stream: true}
)

// negotiate picks the first form of the Accept header, best quality first,
// that the endpoint offers. No header means JSON. The error is a 406.
func negotiate(r *http.Request, offer forms) (accepted, error) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	pretty := isTrue(r.URL.Query(), "pretty")
	if strings.TrimSpace(header) == "" {
		return accepted{media: mediaJSON, pretty: pretty}, nil
	}
	for _, clause := range parseAccept(header) {
		if form, ok := offer.match(clause); ok {
			if clause.params["pretty"] == "1" {
				pretty = true
			}
			form.pretty = pretty
			return form, nil
		}
	}
	return accepted{}, status.NotAcceptable(offer.describe())
}

// clause is one alternative of an Accept header.
type clause struct {
	kind    string // "application/json"
	quality float64
	params  map[string]string // lower-case keys, without q
}

// maxAcceptClauses bounds the work that a header can ask for. Real clients
// send up to five.
const maxAcceptClauses = 32

// parseAccept returns the alternatives, the preferred ones first. Clauses that
// cannot be parsed, or that have quality zero, are left out.
func parseAccept(header string) []clause {
	var clauses []clause
	for part := range strings.SplitSeq(header, ",") {
		if len(clauses) == maxAcceptClauses {
			break
		}
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || kind == "" {
			continue
		}
		c := clause{kind: kind, quality: 1, params: params}
		if q, ok := params["q"]; ok {
			c.quality, err = strconv.ParseFloat(q, 64)
			if err != nil || !(c.quality > 0 && c.quality <= 1) {
				continue
			}
			delete(params, "q")
		}
		clauses = append(clauses, c)
	}
	slices.SortStableFunc(clauses, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	return clauses
}

// match returns the form that a clause asks for, if it is offered.
func (f forms) match(c clause) (accepted, bool) {
	form := accepted{}
	switch c.kind {
	case "*/*":
		// Kubernetes answers application/* with 406; only */* is any.
		form.media = f.media[0]
	case "text/yaml", "application/x-yaml":
		form.media = mediaYAML
	case cborSequence:
		if form.media = mediaCBOR; !f.stream {
			return form, false
		}
	default:
		i := slices.Index(mediaNames[:], c.kind)
		if i < 0 {
			return form, false
		}
		form.media = media(i)
	}
	if !slices.Contains(f.media, form.media) || !f.encodes(form.media, c.params["as"]) {
		return form, false
	}
	if stream, ok := c.params["stream"]; ok && !(f.stream && (stream == "" || stream == "watch")) {
		return form, false
	}
	return form, f.matchShape(c.params, &form)
}

// encodes says whether there is an encoding of a shape: tables, whose cells may be
// anything, exist only as JSON, and custom resources have no protobuf.
func (f forms) encodes(m media, as string) bool {
	if as == "Table" {
		return m == mediaJSON
	}
	return m != mediaProtobuf || !f.custom || as != ""
}

// matchShape reads as, g and v. A shape that is unknown here, an APIGroupList
// of aggregated discovery for example, does not match.
func (f forms) matchShape(params map[string]string, form *accepted) bool {
	as, ok := params["as"]
	if !ok {
		return true
	}
	if !f.shapes || params["g"] != "meta.k8s.io" {
		return false
	}
	form.version = params["v"]
	if form.version != "v1" && form.version != "v1beta1" {
		return false
	}
	switch {
	case as == "Table":
		form.as = asTable
	case as == "PartialObjectMetadataList" && f.list, as == "PartialObjectMetadata" && !f.list:
		form.as = asMetadata
	default:
		return false
	}
	return true
}

func (f forms) describe() string {
	var names []string
	for _, m := range f.media {
		name := mediaNames[m]
		if f.stream {
			name = streamTypeOf(m)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
