package request

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Clients and proxies refuse answers with long headers. So the warnings of an answer
// have maxWarningRunes together; if they are more, each is cut at truncatedRunes, and
// what comes then, beyond the limit, is left out. These are Kubernetes' numbers.
const (
	maxWarningRunes = 4 << 10
	truncatedRunes  = 256
)

// AddWarnings attaches messages that kubectl prints to stderr (RFC 7234 section 5.5,
// code 299), each once, after those that the answer has.
func AddWarnings(w http.ResponseWriter, messages ...string) {
	before, _ := utilnet.ParseWarningHeaders(w.Header()["Warning"])
	var texts []string
	known := map[string]bool{}
	total := 0
	add := func(text string) {
		if text == "" || known[text] {
			return
		}
		known[text] = true
		texts = append(texts, text)
		total += utf8.RuneCountInString(text)
	}
	for _, b := range before {
		add(b.Text)
	}
	for _, message := range messages {
		add(printable(message))
	}
	w.Header().Del("Warning")
	truncate := total > maxWarningRunes
	written := 0
	for _, text := range texts {
		if truncate && written >= maxWarningRunes {
			return
		}
		if runes := []rune(text); truncate && len(runes) > truncatedRunes {
			text = string(runes[:truncatedRunes])
		}
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			written += utf8.RuneCountInString(text)
			w.Header().Add("Warning", header)
		}
	}
}

// printable leaves out what a header must not have.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, text)
}
