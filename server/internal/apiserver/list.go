package apiserver

import "net/http"

// list answers with the objects of a collection, all of one revision. Its JSON is
// the concatenation of the cached objects.
func (s *Server) list(w http.ResponseWriter, r *http.Request, q *request) error {
	form, err := negotiate(r, offerFor(listForm, q.resource))
	if err != nil {
		return err
	}
	include, err := includeObject(q.query)
	if err != nil {
		return err
	}
	opts, err := listOptions(q.query)
	if err != nil {
		return err
	}
	page, err := s.reader.List(r.Context(), q.scope(), &opts)
	if err != nil {
		return err
	}
	presenter := s.presenter(q.resource, form)
	if err := presenter.prepare(r.Context(), page.Items); err != nil {
		return err
	}
	a := newAnswer(w, r, form.contentType())
	writer := listWriter{answer: a, presenter: presenter, include: include}
	err = writer.write(page)
	if err == nil {
		err = a.finish()
	}
	return a.release(err)
}
