// Package difference is the format in which a client says what it holds of a
// collection and a server answers with what is different. docs/users/difference.md
// specifies it byte by byte; both sides are built from this package.
package difference

// Where it is offered, and what names it on the wire.
const (
	// Path precedes the path of a collection: the digest is posted to both
	// together.
	Path = "/levelwire/v1/difference"
	// MediaType is that of the digest and of the answer. The latter's parameter
	// "items" names the media type of the objects in it.
	MediaType = "application/vnd.levelwire.difference"
	// ReasonListInstead is the reason of the Status with which a server advises
	// to list: nearly as much would have to be sent.
	ReasonListInstead = "ListInstead"
)

// version is that of both formats.
const version = 1

var (
	requestMagic = [4]byte{'L', 'W', 'D', 'Q'}
	answerMagic  = [4]byte{'L', 'W', 'D', 'A'}
	endMagic     = [4]byte{'L', 'W', 'D', 'E'}
)
