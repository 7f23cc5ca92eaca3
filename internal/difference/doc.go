// Package difference is the format in which a client sends a digest of the objects
// it holds of a collection and a server answers with the difference.
// docs/users/difference.md specifies it byte by byte; client and server use this
// package.
package difference

// Where a server offers it, and its names on the wire.
const (
	// Path precedes the path of a collection: the digest is posted to both
	// together.
	Path = "/levelwire/v1/difference"
	// MediaType is that of the digest and of the answer. The latter's parameter
	// "items" names the media type of the objects in it.
	MediaType = "application/vnd.levelwire.difference"
	// ReasonListInstead is the reason of the Status with which a server asks the
	// client to list: the difference would be nearly as large.
	ReasonListInstead = "ListInstead"
)

// version is that of both formats.
const version = 1

var (
	requestMagic = [4]byte{'L', 'W', 'D', 'Q'}
	answerMagic  = [4]byte{'L', 'W', 'D', 'A'}
	endMagic     = [4]byte{'L', 'W', 'D', 'E'}
)
