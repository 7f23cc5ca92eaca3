package observe

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/internal/debugapi"
)

// TestTextOfOthersIsPrintable: what a user writes into an object, or calls itself, is no escape
// sequence for the terminal of an administrator.
func TestTextOfOthersIsPrintable(t *testing.T) {
	const escape, c1 = "\x1b]0;owned\a", "\u009b2J"
	var out bytes.Buffer
	p := &eventPrinter{out: &out}
	p.note("ERROR", escape, c1+escape+"\r")
	text := strings.TrimSuffix(out.String(), "\n")
	out.Reset()
	v := &topView{rows: 10}
	v.watchers(&debugapi.Watchers{Now: time.Now(), Total: 1, Items: []debugapi.Watcher{{User: escape, Agent: c1}}})
	text += strings.ReplaceAll(strings.ReplaceAll(v.out.String(), "\x1b[K", ""), "\n", "")
	for _, d := range differences(map[string]any{}, map[string]any{"list": []any{map[string]any{"name": escape, "value": c1}}}) {
		text += cli.Printable(d.String())
	}
	if !strings.Contains(text, "owned") || strings.ContainsAny(text, "\x1b\a\r\u009b") {
		t.Errorf("%q", text)
	}
}
