package read

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// continueToken says where the next page of a list begins. Its wire form is that of
// Kubernetes, base64 of JSON, so that a client may move between servers. It refers
// to no state of this process, so that it survives a restart.
type continueToken struct {
	APIVersion string `json:"v"`
	// Revision is that of the first page's snapshot; inconsistent, as every negative
	// one, asks for the remaining objects as they are now.
	Revision storage.Revision `json:"rv"`
	// Start is the first key that may be returned, without the prefix that
	// all keys of the list share.
	Start string `json:"start"`
}

const (
	continueVersion                  = "meta.k8s.io/v1"
	inconsistent    storage.Revision = -1
	// maxContinueLength bounds the work of decoding. A key has a namespace of 63
	// bytes and a name of 253 bytes at most.
	maxContinueLength = 2048
)

// encodeContinue returns the token of the page that follows the object with key
// last.
func encodeContinue(revision storage.Revision, prefix, last string) (string, error) {
	// The smallest key that is greater than last is last and a zero byte.
	return encodeToken(continueToken{
		APIVersion: continueVersion, Revision: revision, Start: strings.TrimPrefix(last, prefix) + "\x00",
	})
}

func encodeToken(t continueToken) (string, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(data), nil
}

// decodeContinue reads a token. Every error is a 400, in the words of Kubernetes.
func decodeContinue(token string) (continueToken, error) {
	t, err := parseContinue(token)
	if err != nil {
		err = status.BadRequest("invalid continue token: continue key is not valid: %v", err)
	}
	return t, err
}

func parseContinue(token string) (t continueToken, err error) {
	if len(token) > maxContinueLength {
		return t, errors.New("it is too long")
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, err
	}
	switch {
	case t.APIVersion != continueVersion:
		return t, fmt.Errorf("server does not recognize this encoded version %s", t.APIVersion)
	case t.Revision == 0:
		return t, errors.New("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.Start == "":
		return t, errors.New("encoded start key empty (version meta.k8s.io/v1)")
	}
	// A start that leaves the list's prefix would show other objects than were
	// authorized.
	key := "/" + strings.TrimPrefix(t.Start, "/")
	if path.Clean(key) != key {
		return t, errors.New(t.Start)
	}
	if key != "/" { // from which everything begins
		t.Start = key[1:]
	}
	t.Revision = max(t.Revision, inconsistent)
	return t, nil
}

// errContinueExpired is the 410 for a token whose snapshot is gone. It carries
// another token, with which the client gets the remaining objects as they are now.
func errContinueExpired(start string) error {
	err := apierrors.NewResourceExpired(
		"The provided continue parameter is too old to display a consistent list result. You can start a new list " +
			"without the continue parameter, or use the continue token in this response to retrieve the remainder of the " +
			"results. Continuing with the provided token results in an inconsistent list - objects that were created, " +
			"modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	token, encodeErr := encodeToken(continueToken{APIVersion: continueVersion, Revision: inconsistent, Start: start})
	if encodeErr == nil {
		err.ErrStatus.Continue = token
	}
	return err
}
