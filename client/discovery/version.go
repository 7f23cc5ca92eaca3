package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/version"

	"github.com/levelwire/levelwire/client"
)

// versionPath is what every API server answers without authorization, unless its roles
// were changed.
const versionPath = "/version"

// ServerVersion asks the server for its version, as kubectl version does. It is an error,
// a *client.DecodeError, if something else than an API server answers; a refusal is what
// client.ResponseError makes of it.
func ServerVersion(ctx context.Context, c *client.Client) (*version.Info, error) {
	resp, data, err := get(ctx, c, versionPath, http.Header{"Accept": {"application/json"}}) //nolint:bodyclose // get closes it
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(versionPath, resp, data)
	}
	info := &version.Info{}
	if err := json.Unmarshal(data, info); err != nil {
		return nil, &client.DecodeError{What: versionPath, Err: err}
	}
	if info.GitVersion == "" {
		return nil, &client.DecodeError{What: versionPath, Err: errors.New("there is no gitVersion: is this the address of an API server?")}
	}
	return info, nil
}
