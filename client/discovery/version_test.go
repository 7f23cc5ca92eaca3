package discovery_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
)

func TestServerVersion(t *testing.T) {
	for name, test := range map[string]struct {
		answer answer
		want   string // gitVersion
		says   string // of the error
		decode bool   // it is a DecodeError
		is     func(error) bool
	}{
		"a version":  {answer: answer{200, "application/json", `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`}, want: "v1.37.2"},
		"a page":     {answer: answer{200, "text/html", `<html>login</html>`}, says: "/version", decode: true},
		"no version": {answer: answer{200, "application/json", `{}`}, says: "API server", decode: true},
		"a list":     {answer: answer{200, "application/json", `[]`}, says: "/version", decode: true},
		"refused":    {answer: answer{403, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`}, says: "/version", is: apierrors.IsForbidden},
		"a proxy's":  {answer: answer{502, "text/html", `bad gateway`}, says: "bad gateway", is: func(err error) bool { return !client.IsStatus(err) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{instead: map[string]answer{"/version": test.answer}}
			info, err := discovery.ServerVersion(t.Context(), s.client(t))
			if test.want != "" {
				if err != nil || info.GitVersion != test.want || info.Minor != "37" {
					t.Errorf("got %+v, %v", info, err)
				}
				return
			}
			var decode *client.DecodeError
			if err == nil || info != nil || !strings.Contains(err.Error(), test.says) || errors.As(err, &decode) != test.decode || test.is != nil && !test.is(err) {
				t.Errorf("got %+v, %v", info, err)
			}
		})
	}
	s := &server{down: true}
	if _, err := discovery.ServerVersion(t.Context(), s.client(t)); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("without a server: %v", err)
	}
}
