package attacks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// What users do with requests that are well formed as HTTP.

// status is the error of an answer that refuses.
type status int

func (s status) Error() string { return http.StatusText(int(s)) }

// send makes a request as the attacker's user and discards the answer.
func (a *attacker) send(ctx context.Context, method, path, body string, more ...string) error {
	r, err := http.NewRequestWithContext(ctx, method, a.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+a.Token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	answer, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode >= 300 {
		return status(answer.StatusCode)
	}
	return err
}

// invented asks with names that no server knows, each only once: metrics must not remember
// them.
func invented(ctx context.Context, a *attacker) error {
	n := a.serial.Add(1)
	switch n % 4 {
	case 0:
		return a.send(ctx, fmt.Sprint("METHOD", n), "/api/v1/pods", "")
	case 1:
		return a.send(ctx, http.MethodGet, fmt.Sprint("/api/v1/namespaces/default/pods/x/sub", n), "")
	case 2:
		return a.send(ctx, http.MethodGet, "/api/v1/namespaces/default/pods/x/%ff", "")
	default:
		return a.send(ctx, http.MethodGet, fmt.Sprintf("/apis/group%d.example.com/v1/things%d", n, n), "")
	}
}
