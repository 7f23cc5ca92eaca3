package conformance

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run has found.
type Report struct {
	Server   string        `json:"server"`
	Duration time.Duration `json:"durationNanoseconds"`
	Results  []Result      `json:"results"`
}

// Count returns how many results have a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, result := range r.Results {
		if result.Verdict == v {
			n++
		}
	}
	return n
}

// WriteTable writes a table that a person can read, the evidence of failures
// behind it, and what was not decided.
func (r *Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GUARANTEE\tVERDICT\tTIME\t")
	for _, result := range r.Results {
		text := result.Sentence
		if result.Verdict != Pass {
			text, _, _ = strings.Cut(result.Reason, "\n")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", result.Name, result.Verdict, roundTime(result.Duration), text)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, result := range r.Results {
		if result.Verdict == Fail || result.Verdict == NotDecided {
			fmt.Fprintf(w, "\n%s\n  promised: %s (%s)\n  %s\n", result.Name, result.Sentence, result.Source, indent(result.Reason))
			for _, line := range result.Evidence {
				fmt.Fprintf(w, "    %s\n", indent(line))
			}
		}
	}
	_, err := fmt.Fprintf(w, "\n%d passed, %d failed, %d not decided, %d skipped in %s: %s\n",
		r.Count(Pass), r.Count(Fail), r.Count(NotDecided), r.Count(Skip), roundTime(r.Duration), r.Server)
	return err
}

func indent(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ") }

func roundTime(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// WriteJSON writes everything, for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the XML that continuous integration systems read.
func (r *Report) WriteJUnit(w io.Writer) error {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
	suite := junitSuite{
		Name: "levelwire verify", Tests: len(r.Results), Time: seconds(r.Duration),
		Failures: r.Count(Fail), Errors: r.Count(NotDecided), Skipped: r.Count(Skip),
	}
	for _, result := range r.Results {
		class, name, _ := strings.Cut(result.Name, "/")
		c := junitCase{Class: class, Name: name, Time: seconds(result.Duration)}
		message := &junitMessage{Message: result.Reason, Text: strings.Join(result.Evidence, "\n")}
		switch result.Verdict {
		case Fail:
			c.Failure = message
		case NotDecided:
			c.Error = message // a test that could not be carried out
		case Skip:
			c.Skipped = message
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
