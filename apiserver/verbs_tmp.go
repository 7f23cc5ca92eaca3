package apiserver

import "net/http"

func (s *Server) get(w http.ResponseWriter, r *http.Request, q *request) error {
	return errNoSuchPath()
}
func (s *Server) list(w http.ResponseWriter, r *http.Request, q *request) error {
	return errNoSuchPath()
}
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q *request) error {
	return errNoSuchPath()
}
