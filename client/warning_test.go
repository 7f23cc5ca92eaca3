package client

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// warningServer warns in each answer: with the same text, and with a new one.
func warningServer() *recorder {
	return &recorder{answer: func(n int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "v1beta1 is deprecated"`)
		w.Header().Add("Warning", fmt.Sprintf(`299 - "unknown field %d"`, n))
		w.Header().Add("Warning", `not a warning`)
		answerJSON(w, http.StatusOK, `{"metadata":{"name":"a"}}`)
	}}
}

func TestWarningsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	client, _ := serve(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, warningServer())
	const requests = maxLoggedWarnings + 10
	for range requests {
		if err := get(client, t); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(log.String(), "v1beta1 is deprecated"); got != 1 {
		t.Errorf("logged %d times", got)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != maxLoggedWarnings {
		t.Errorf("logged %d texts", got)
	}
}

type warningHandler []string

func (h *warningHandler) HandleWarningHeader(code int, _, text string) {
	*h = append(*h, fmt.Sprint(code, " ", text))
}

func TestWarningHandlerOfTheConfig(t *testing.T) {
	client, _ := serve(t, Options{}, warningServer())
	var handler warningHandler
	client.warnings = newWarnings(&rest.Config{WarningHandler: &handler}, nil)
	if err := get(client, t); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(handler, ", "); got != "299 v1beta1 is deprecated, 299 unknown field 1" {
		t.Errorf("got %s", got)
	}
}
