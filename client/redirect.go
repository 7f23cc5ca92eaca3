package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects is how often one request is sent to another place, as in net/http.
const maxRedirects = 10

// checkRedirect is http.Client's CheckRedirect. It lets a request follow a redirect only to
// another path of the same server: credentials are added below it, to whatever it sends,
// and a pod behind a proxy subresource may redirect anywhere, another port of the same
// machine included. A write is not followed as a GET, whose answer would pass for its
// success. What is not followed is the answer; see responseError.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects || req.Method != via[0].Method || origin(req.URL) != origin(via[0].URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

// origin returns what a server is called in all its addresses: scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// redirectMessage says where a redirect leads that was not followed; "" if the response is
// none. Only the server is named: a path or query may hold secrets.
func redirectMessage(resp *http.Response) string {
	if resp.StatusCode < http.StatusMultipleChoices || resp.StatusCode >= http.StatusBadRequest || resp.Request == nil {
		return ""
	}
	to, err := resp.Location()
	if err != nil {
		return ""
	}
	if from := resp.Request.URL; origin(to) != origin(from) {
		return fmt.Sprintf("the server redirects to %s://%s, and credentials are sent to %s://%s only: if that is the API server, make it the host of the configuration",
			to.Scheme, to.Host, from.Scheme, from.Host)
	}
	return fmt.Sprintf("the server redirects to another path: a %s follows only as one, and %d times at most", resp.Request.Method, maxRedirects)
}
