package encoding

import (
	"net/http"
	"strconv"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// WriteError answers with the Status of err, in a media type that the client
// accepts, and in JSON if it accepts none that is offered: the client must still get
// the reason.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	answer := status.Of(err)
	record := request.RecordFrom(r.Context())
	if answer.Code >= 500 && !status.IsResourceVersionTooLarge(answer) && !status.IsUnknownSchema(answer) {
		record.Err = err
	}
	if record.Audit != nil {
		record.Audit.Failed(answer)
	}
	if d := answer.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	form, negotiated := Negotiate(r, PlainOffer)
	if negotiated != nil {
		form = Form{Media: JSON}
	}
	form.As = AsObject
	body, encodeErr := encodeObject(form, answer)
	if encodeErr != nil {
		http.Error(w, answer.Message, int(answer.Code))
		return
	}
	WriteBody(w, r, int(answer.Code), form.ContentType(), body)
}
