package handlers

import (
	"context"
	"encoding/binary"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Difference answers a request for a difference of a list that its user may have: it reads the
// digest, compares, and writes the answer.
func (h *Handlers) Difference(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != difference.MediaType {
		return status.Failure(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "a digest has the media type "+difference.MediaType)
	}
	form, err := encoding.NegotiateDifference(r, q.Resource)
	if err != nil {
		return err
	}
	body, err := encoding.ReadBody(w, r, h.config.MaxBodyBytes)
	if err != nil {
		return err
	}
	digest, err := difference.ParseDigest(body)
	if err != nil {
		return status.BadRequest("the digest: %v", err)
	}
	opts, err := request.ListOptions(q.Query)
	if err != nil {
		return err
	}
	d, err := h.config.Reader.Difference(r.Context(), q.Scope(), &opts, digest)
	if err != nil {
		if apierrors.ReasonForError(err) == difference.ReasonListInstead {
			h.config.Metrics.Difference.ListInstead.Inc()
		}
		return err
	}
	encoder := h.Encoder(q.Resource, form)
	if err := encoder.Prepare(r.Context(), d.Sent()); err != nil {
		return err
	}
	answer := encoding.NewAnswer(w, r, mime.FormatMediaType(difference.MediaType, map[string]string{"items": form.ContentType()}))
	err = writeDifference(r.Context(), answer, encoder, d)
	if err == nil {
		err = answer.Finish()
	}
	if err == nil {
		h.config.Metrics.Difference.Answered(&d.Header)
	}
	return answer.Release(err)
}

// writeDifference writes the answer.
func writeDifference(ctx context.Context, a *encoding.Answer, p encoding.Encoder, d *read.Difference) error {
	if _, err := a.Write(d.Header.Append(nil, d.Bits())); err != nil {
		return err
	}
	var buf [binary.MaxVarintLen64]byte
	if d.Header.Unchanged > 0 {
		for hash := range d.Unchanged() {
			if _, err := a.Write(difference.AppendHash(buf[:0], hash)); err != nil {
				return err
			}
		}
	}
	if d.Header.Sent > 0 {
		item := p.DocumentAppender(ctx)
		for o := range d.Sent() {
			encoded, err := item(o)
			if err != nil {
				return err
			}
			if _, err := a.Write(difference.AppendSize(buf[:0], len(encoded))); err != nil {
				return err
			}
			if _, err := a.Write(encoded); err != nil {
				return err
			}
		}
	}
	_, err := a.Write(difference.AppendEnd(nil))
	return err
}
