package audit

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestTooLargeBatchesAreSplit: of a batch that the webhook refuses for its size, only the
// events that are too large by themselves are lost, and none of them is sent again.
func TestTooLargeBatchesAreSplit(t *testing.T) {
	const limit = 8 << 10
	var mu sync.Mutex
	var taken []string
	refused := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var list auditv1.EventList
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit)).Decode(&list); err != nil {
			refused++
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		for _, e := range list.Items {
			taken = append(taken, string(e.AuditID))
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: '" + server.URL + "'}}]\nusers: [{name: u, user: {}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	b, err := newWebhook(t.Context(), &Config{WebhookConfigFile: kubeconfig, WebhookBackoff: time.Hour}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	var batch []*auditinternal.Event
	for i := range 8 {
		e := event(i, `"`+strings.Repeat("x", 2000)+`"`)
		if i == 2 || i == 5 {
			e = event(i, `"`+strings.Repeat("x", 2*limit)+`"`)
		}
		batch = append(batch, e)
	}
	lost := b.send(batch)
	slices.Sort(taken)
	if got := fmt.Sprint(taken); got != "[0 1 3 4 6 7]" || lost[pluginWebhook] != 2 || refused != 7 {
		t.Errorf("taken: %s, lost: %v, %d refused", got, lost, refused)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "events=2") {
		t.Errorf("logged: %s", log.String())
	}
}
