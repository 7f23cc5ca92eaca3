package observe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTopOfInformers: indexes are shown, slow handlers come first, and a program that cannot be asked
// is a line.
func TestTopOfInformers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"program":"shop","items":[{"name":"pods","objects":3,"bytes":5000,"ageMillis":-1,"queued":1,"indexes":[{"name":"byNode","values":2}],
			"handlers":[{"name":"quick","delivered":9,"busyMillis":9},{"name":"slow","queued":2,"lagMillis":3000,"delivered":4,"busyMillis":8000}]}]}`)
	}))
	defer s.Close()
	var sample topSample
	sample.readInformers(t.Context(), []string{s.URL, s.URL + "\n", "http://127.0.0.1:1/"})
	v := topView{rows: 10}
	v.programs(sample.programs)
	out := v.out.String()
	for _, want := range []string{"shop pods", "byNode 2", "never", "shop pods slow", "3s", "2s", "refused"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Index(out, "pods slow") > strings.Index(out, "pods quick") {
		t.Errorf("the slow handler is not first:\n%s", out)
	}
}
