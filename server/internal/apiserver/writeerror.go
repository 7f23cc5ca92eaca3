package apiserver

import (
	"net/http"
	"strconv"

	"github.com/levelwire/levelwire/server/internal/status"
)

// writeError answers with the Status of err, in protobuf or YAML if that is
// what the client reads and in JSON otherwise: a client whose Accept cannot be
// met must still learn why.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	answer := status.Of(err)
	if info := infoFrom(r.Context()); info != nil && answer.Code >= 500 && !status.IsResourceVersionTooLarge(answer) && !status.IsUnknownSchema(answer) {
		info.err = err
	}
	if d := answer.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	form, negotiated := negotiate(r, anyForm)
	if negotiated != nil {
		form = accepted{media: mediaJSON}
	}
	form.as = asObject
	body, encodeErr := encodeObject(form, answer)
	if encodeErr != nil {
		http.Error(w, answer.Message, int(answer.Code))
		return
	}
	writeBody(w, r, int(answer.Code), form.contentType(), body)
}
