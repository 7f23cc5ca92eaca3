package differential

import (
	"io"
	"net/http"
	"time"
)

// answer is what a server says to a request. It is also how answers are stored.
type answer struct {
	At       time.Time      `json:"at,omitzero"` // when it came, which says what of it is the time of the request
	Code     int            `json:"code"`
	Warnings []string       `json:"warnings,omitempty"`
	Body     map[string]any `json:"body,omitempty"`  // a Status, if the request is refused
	Text     string         `json:"text,omitempty"`  // a body that is no JSON object
	After    *answer        `json:"after,omitempty"` // of a delete that is no dry run: what a read finds then

	Headers map[string]string `json:"headers,omitempty"` // those of comparedHeaders
	Step    string            `json:"step,omitempty"`    // its name
	Steps   []*answer         `json:"steps,omitempty"`   // of a sequence
}

func (a *answer) accepted() bool { return a.Code < 300 }

func (a *answer) text(name string) string {
	text, _ := a.Body[name].(string)
	return text
}

// cause is what is wrong with one field.
type cause struct {
	Reason  string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// causes returns the causes of a refusal, in the server's order.
func (a *answer) causes() []cause {
	details, _ := a.Body["details"].(map[string]any)
	list, _ := details["causes"].([]any)
	var causes []cause
	for _, item := range list {
		members, _ := item.(map[string]any)
		var c cause
		c.Reason, _ = members["reason"].(string)
		c.Field, _ = members["field"].(string)
		c.Message, _ = members["message"].(string)
		causes = append(causes, c)
	}
	return causes
}

func parseAnswer(response *http.Response) (*answer, error) {
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	a := newAnswer(response)
	if a.Body, err = parseJSON(text); err != nil {
		a.Body, a.Text = nil, string(text)
	}
	return a, nil
}
