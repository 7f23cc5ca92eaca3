package request

import (
	"net/http/httptest"
	"strings"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

func TestWarningsAreTruncated(t *testing.T) {
	long := strings.Repeat("ü", 300)
	for name, test := range map[string]struct {
		calls [][]string
		want  []int // runes of each
	}{
		"few":            {[][]string{{long, "b"}}, []int{300, 1}},
		"once each":      {[][]string{{"a", "b", "a", ""}, {"b"}}, []int{1, 1}},
		"one long":       {[][]string{{strings.Repeat("x", 5000)}}, []int{256}},
		"at the limit":   {[][]string{{strings.Repeat("x", 4096)}}, []int{4096}},
		"in two calls":   {[][]string{{"deprecated"}, {strings.Repeat("x", 4090), "y"}}, []int{10, 256, 1}},
		"control":        {[][]string{{"a\nb\u0085c\xff"}}, []int{4}},
		"beyond measure": {[][]string{strings.Split(strings.Repeat(long+",", 3)+strings.Join(numbered(100, long), ","), ",")}, repeated(16, 256)},
	} {
		w := httptest.NewRecorder()
		for _, messages := range test.calls {
			AddWarnings(w, messages...)
		}
		warnings, errs := utilnet.ParseWarningHeaders(w.Header()["Warning"])
		if len(errs) > 0 || len(warnings) != len(test.want) {
			t.Errorf("%s: %d warnings, %v, want %d", name, len(warnings), errs, len(test.want))
			continue
		}
		for i, warning := range warnings {
			if runes := len([]rune(warning.Text)); runes != test.want[i] || warning.Code != 299 {
				t.Errorf("%s: warning %d has %d runes, want %d", name, i, runes, test.want[i])
			}
		}
	}
}

func numbered(n int, text string) (texts []string) {
	for i := range n {
		texts = append(texts, strings.Repeat("0", i)+text)
	}
	return texts
}

func repeated(n, value int) (values []int) {
	for range n {
		values = append(values, value)
	}
	return values
}
