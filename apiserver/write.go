package apiserver

import "net/http"

func (s *Server) create(w http.ResponseWriter, r *http.Request, q *request) error {
	return errMethod(q.resource, q.verb)
}

func (s *Server) update(w http.ResponseWriter, r *http.Request, q *request) error {
	return errMethod(q.resource, q.verb)
}

func (s *Server) patch(w http.ResponseWriter, r *http.Request, q *request) error {
	return errMethod(q.resource, q.verb)
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, q *request) error {
	return errMethod(q.resource, q.verb)
}

func (s *Server) deleteCollection(w http.ResponseWriter, r *http.Request, q *request) error {
	return errMethod(q.resource, q.verb)
}

// getSubresource answers GET of any subresource but status.
func (s *Server) getSubresource(w http.ResponseWriter, r *http.Request, q *request) error {
	return errNoSuchPath()
}

func (s *Server) createSubresource(w http.ResponseWriter, r *http.Request, q *request) error {
	return errNoSuchPath()
}

func (s *Server) updateSubresource(w http.ResponseWriter, r *http.Request, q *request) error {
	return errNoSuchPath()
}

func (s *Server) patchSubresource(w http.ResponseWriter, r *http.Request, q *request) error {
	return errNoSuchPath()
}
