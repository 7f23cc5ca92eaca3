package tested

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
)

// SaveProfile writes what the server records under /debug/pprof/, such as
// profile?seconds=5, to a file. It blocks for as long as the server records.
func (a Access) SaveProfile(ctx context.Context, what, path string) error {
	client, err := a.HTTPClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", what, response.Status)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
